package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// tiny makes buckets of two parameters.
func tiny[T ddp.Float]() ddp.Options[T] {
	return ddp.Options[T]{FirstBucketBytes: 8, BucketBytes: 50}
}

const steps, batch = 12, 84 // 84 is divided by 1, 2, 3, 4 and 7

// alone trains on one rank without ddp, and returns the losses and parameters.
func alone() (losses, params []float64) {
	n := newNet[float64](0)
	for _, b := range batches(steps, batch) {
		losses = append(losses, n.backward(b, 1, func(int) {}))
		n.update(0.3)
	}
	return losses, n.flat()
}

// Ranks that share each batch follow one rank that has it all, and have equal parameters bit by bit.
func TestFollowsOneRank(t *testing.T) {
	wantLosses, want := alone()
	require.Less(t, wantLosses[steps-1], wantLosses[0])
	for _, ranks := range []int{1, 2, 3, 4, 7} {
		for _, views := range []bool{false, true} {
			for _, parts := range []int{1, 3} { // with NoSync
				t.Run(fmt.Sprintf("ranks=%d/views=%v/parts=%d", ranks, views, parts), func(t *testing.T) {
					params := make([][]float64, ranks)
					all(t, ranks, func(rank int) error {
						n := newNet[float64](uint64(rank)) // rank 0's are those of alone
						r, err := ddp.New(bg, nil, n.parameters(views), tiny[float64]())
						if err != nil {
							return err
						}
						n.adopt(r.Grad)
						for step, b := range batches(steps, batch) {
							mine := b[rank*batch/ranks : (rank+1)*batch/ranks]
							loss := []float64{0}
							each := (len(mine) + parts - 1) / parts
							if err := r.NoSync(func() error {
								for len(mine) > each {
									loss[0] += n.backward(mine[:each], float64(batch)/float64(ranks*each), r.Ready)
									mine = mine[each:]
									if err := r.Wait(bg); err != nil {
										return err
									}
								}
								return nil
							}); err != nil {
								return err
							}
							loss[0] += n.backward(mine, float64(batch)/float64(ranks*len(mine)), r.Ready)
							if err := r.Wait(bg); err != nil {
								return err
							}
							n.update(0.3)
							if err := dist.AllReduce(loss, dist.Avg); err != nil {
								return err
							}
							if math.Abs(loss[0]-wantLosses[step]) > 1e-9 {
								return fmt.Errorf("step %d: the loss is %v, want %v", step, loss[0], wantLosses[step])
							}
						}
						params[rank] = n.flat()
						s := r.Stats()
						return errors.Join(equal("steps", s.Steps, steps), equal("bytes", s.Bytes, 8*(3*width+1)), equal("buckets", s.Buckets, 3), r.Close())
					})
					for rank := range params {
						require.Equal(t, params[0], params[rank], "rank %d", rank)
					}
					require.InDeltaSlice(t, want, params[0], 1e-9)
				})
			}
		}
	}
}

// What differs between ranks is an error on all of them, and names the first parameter that differs.
func TestMismatch(t *testing.T) {
	base := func() []ddp.Parameter[float32] {
		return []ddp.Parameter[float32]{
			{Name: "a", Data: make([]float32, 6), Shape: []int{2, 3}},
			{Name: "b", Data: make([]float32, 4)},
		}
	}
	for name, c := range map[string]struct {
		change func(p []ddp.Parameter[float32], o *ddp.Options[float32]) []ddp.Parameter[float32]
		want   string
	}{
		"name": {func(p []ddp.Parameter[float32], _ *ddp.Options[float32]) []ddp.Parameter[float32] {
			p[1].Name = "c"
			return p
		}, `parameter 1: "b", float32 [4] on ranks 0, 2, "c", float32 [4] on rank 1`},
		"shape": {func(p []ddp.Parameter[float32], _ *ddp.Options[float32]) []ddp.Parameter[float32] {
			p[0].Shape = []int{3, 2}
			return p
		}, `parameter 0: "a", float32 [2 3] on ranks 0, 2, "a", float32 [3 2] on rank 1`},
		"order": {func(p []ddp.Parameter[float32], _ *ddp.Options[float32]) []ddp.Parameter[float32] {
			slices.Reverse(p)
			return p
		}, `parameter 0: "a"`},
		"fewer": {func(p []ddp.Parameter[float32], _ *ddp.Options[float32]) []ddp.Parameter[float32] { return p[:1] }, `parameter 1: "b", float32 [4] on ranks 0, 2, none (it has 1) on rank 1`},
		"options": {func(p []ddp.Parameter[float32], o *ddp.Options[float32]) []ddp.Parameter[float32] {
			o.FindUnused = true
			return p
		}, "options: "},
		"form": {func(p []ddp.Parameter[float32], _ *ddp.Options[float32]) []ddp.Parameter[float32] {
			p[0].Grad, p[1].Grad = make([]float32, 6), make([]float32, 4)
			return p
		}, "form of gradients: parts of buckets on ranks 0, 2, the program's own on rank 1"},
		"buffers": {func(p []ddp.Parameter[float32], o *ddp.Options[float32]) []ddp.Parameter[float32] {
			o.Buffers = [][]float32{{1}}
			return p
		}, "lengths of buffers: [] on ranks 0, 2, [1] on rank 1"},
	} {
		t.Run(name, func(t *testing.T) {
			for rank, err := range spawn(t, 3, func(rank int) error {
				var o ddp.Options[float32]
				p := base()
				if rank == 1 {
					p = c.change(p, &o)
				}
				_, err := ddp.New(bg, nil, p, o)
				return err
			}) {
				var m *ccl.MismatchError
				require.ErrorAs(t, err, &m, "rank %d", rank)
				require.Contains(t, err.Error(), "ddp: ranks disagree on "+c.want)
			}
		})
	}
}

// A mistake of one rank is an error on all, which names the rank.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		params []ddp.Parameter[float64]
		want   string
	}{
		"none":  {nil, "there are no parameters"},
		"twice": {[]ddp.Parameter[float64]{{Name: "a", Data: []float64{1}}, {Name: "a", Data: []float64{1}}}, `parameters 0 and 1 have the same name "a"`},
		"shape": {[]ddp.Parameter[float64]{{Name: "a", Data: []float64{1}, Shape: []int{2}}}, `parameter "a" has the shape [2] and 1 elements`},
		"grad":  {[]ddp.Parameter[float64]{{Name: "a", Data: []float64{1}, Grad: []float64{1, 2}}}, `parameter "a" has 1 elements, and its gradient 2`},
		"some":  {[]ddp.Parameter[float64]{{Name: "a", Data: []float64{1}, Grad: []float64{1}}, {Name: "b", Data: []float64{1}}}, "1 of 2 parameters have a gradient: all or none must have one"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range spawn(t, 2, func(rank int) error {
				params := []ddp.Parameter[float64]{{Name: "a", Data: []float64{1}}}
				if rank == 1 {
					params = c.params
				}
				_, err := ddp.New(bg, nil, params, ddp.Options[float64]{})
				return err
			}) {
				var wrong *ccl.InvalidArgumentError
				require.ErrorAs(t, err, &wrong)
				require.Contains(t, err.Error(), "rank 1: "+c.want)
			}
		})
	}
}

// three makes a Reducer of three parameters of one element, each in a bucket of its own.
func three(opts ddp.Options[float64], views bool) (*ddp.Reducer[float64], [][]float64, error) {
	opts.FirstBucketBytes, opts.BucketBytes = 8, 8
	var params []ddp.Parameter[float64]
	grads := make([][]float64, 3)
	for i, name := range []string{"a", "b", "c"} {
		p := ddp.Parameter[float64]{Name: name, Data: []float64{0}}
		if !views {
			grads[i] = []float64{0}
			p.Grad = grads[i]
		}
		params = append(params, p)
	}
	r, err := ddp.New(bg, nil, params, opts)
	if err != nil {
		return nil, nil, err
	}
	for i := range grads {
		grads[i] = r.Grad(i)
	}
	return r, grads, nil
}

// A gradient that is not ready is an error on all ranks, which names the rank and the parameter.
func TestNotReady(t *testing.T) {
	errs := make([]error, 3)
	all(t, 3, func(rank int) error {
		r, _, err := three(ddp.Options[float64]{}, true)
		if err != nil {
			return err
		}
		for i := range 3 {
			if rank != 1 || i == 2 {
				r.Ready(i)
			}
		}
		errs[rank] = r.Wait(bg)
		return dist.Barrier() // the program goes on
	})
	for rank, err := range errs {
		const want = "ddp: rank 1: no gradient was ready for a, b: call Ready for each, or set FindUnused if a step may leave parameters out"
		require.ErrorContains(t, err, want)
		if rank == 1 {
			var own *ddp.UnreadyError
			require.ErrorAs(t, err, &own)
			require.Equal(t, []string{"a", "b"}, own.Parameters)
			continue
		}
		var m *ccl.MismatchError
		require.ErrorAs(t, err, &m)
		require.ErrorContains(t, err, fmt.Sprintf("ddp: rank %d: bucket 1 (b)", rank))
	}
}

// With FindUnused a parameter that some rank leaves out counts as zero there; one that all leave out keeps its
// gradient.
func TestFindUnused(t *testing.T) {
	for _, views := range []bool{false, true} {
		all(t, 2, func(rank int) error {
			r, g, err := three(ddp.Options[float64]{FindUnused: true}, views)
			if err != nil {
				return err
			}
			kept := 7.0
			if views {
				kept = 0
			}
			for range 3 {
				for i := range g {
					g[i][0] = 7
				}
				if rank == 1 {
					g[1][0] = 4
					r.Ready(1)
				}
				g[2][0] = float64(rank)
				r.Ready(2)
				if err := r.Wait(bg); err != nil {
					return err
				}
				if err := errors.Join(equal("a", g[0][0], kept), equal("b", g[1][0], 2), equal("c", g[2][0], 0.5)); err != nil {
					return err
				}
			}
			return r.Close()
		})
	}
}

// With StaticGraph all steps are like the first.
func TestStaticGraph(t *testing.T) {
	for _, views := range []bool{false, true} {
		for rank, err := range spawn(t, 2, func(rank int) error {
			r, g, err := three(ddp.Options[float64]{StaticGraph: true}, views)
			if err != nil {
				return err
			}
			for range 4 {
				g[0][0], g[2][0] = 2, 3
				if rank == 0 {
					r.Ready(0)
				}
				r.Ready(2)
				if err := r.Wait(bg); err != nil {
					return err
				}
				if err := errors.Join(equal("a", g[0][0], 1), equal("c", g[2][0], 3)); err != nil {
					return err
				}
			}
			if rank == 0 {
				r.Ready(0)
			}
			r.Ready(1)
			r.Ready(2)
			err = r.Wait(bg)
			var wrong *ccl.InvalidArgumentError
			if !errors.As(err, &wrong) || wrong.Message != `parameter "b" was ready, and was not in the first step (StaticGraph)` {
				return fmt.Errorf("got %w", err)
			}
			if rank == 1 { // rank 0 leaves out what it had
				r.Ready(2)
			} else {
				r.Ready(2)
			}
			return r.Wait(bg)
		}) {
			require.ErrorContains(t, err, "ddp: rank 0: no gradient was ready for a: they were ready in the first step (StaticGraph)", "rank %d", rank)
		}
	}
}

// A mistake in Ready is an error of Wait, on the rank that made it; the step is completed.
func TestReadyMistakes(t *testing.T) {
	all(t, 2, func(rank int) error {
		r, g, err := three(ddp.Options[float64]{}, false)
		if err != nil {
			return err
		}
		for step, wrong := range []int{3, -1, 1} {
			for i := range g {
				g[i][0] = float64(rank + step)
				r.Ready(i)
			}
			if rank == 1 {
				r.Ready(wrong)
			}
			err := r.Wait(bg)
			var e *ccl.InvalidArgumentError
			if errors.As(err, &e) != (rank == 1) {
				return fmt.Errorf("got %w", err)
			}
			if err := equal("mean", g[2][0], 0.5+float64(step)); err != nil {
				return err
			}
		}
		return r.Close()
	})
}

// After the first step the buckets have the order in which gradients were ready on rank 0.
func TestRebuild(t *testing.T) {
	all(t, 3, func(rank int) error {
		var h order
		r, g, err := three(ddp.Options[float64]{Hook: &h}, false)
		if err != nil {
			return err
		}
		for range 3 {
			for _, i := range []int{1, 0, 2} {
				g[i][0] = float64(rank * i)
				r.Ready(i)
			}
			if err := r.Wait(bg); err != nil {
				return err
			}
			if err := errors.Join(equal("b", g[1][0], 1), equal("c", g[2][0], 2)); err != nil {
				return err
			}
		}
		return errors.Join(equal("order", fmt.Sprint(h), fmt.Sprint(order{2, 1, 0, 1, 0, 2, 1, 0, 2})), r.Close())
	})
}

// order is a hook that notes the parameters of buckets in the order in which they are started.
type order []int

func (o *order) Start(b *ddp.Bucket[float64]) *ccl.Work {
	*o = append(*o, b.Parameters...)
	return ccl.AllReduceAsync(bg, b.Comm, b.Gradients, b.Gradients, b.Op)
}

func (o *order) Finish(*ddp.Bucket[float64]) error { return nil }

// Ranks with different numbers of steps get exact means, and the parameters of those that trained longest.
func TestJoin(t *testing.T) {
	for _, views := range []bool{false, true} {
		for _, opts := range []ddp.Options[float64]{{}, {FindUnused: true}, {StaticGraph: true}, {BroadcastBuffers: true, Buffers: [][]float64{{0}}}} {
			all(t, 4, func(rank int) error {
				opts := opts
				if opts.Buffers != nil {
					opts.Buffers = [][]float64{{float64(rank)}}
				}
				r, g, err := three(opts, views)
				if err != nil {
					return err
				}
				for range 2 { // twice, with steps of all ranks between
					err := r.Join(bg, func() error {
						for step := range []int{2, 0, 5, 3}[rank] {
							var sum, count float64
							for other, steps := range []int{2, 0, 5, 3} {
								if step < steps {
									sum += float64(10*other + 1)
									count++
								}
							}
							for i := range g {
								g[i][0] = float64(10*rank + 1)
								r.Ready(i)
							}
							if err := r.Wait(bg); err != nil {
								return err
							}
							for i := range g {
								if math.Abs(g[i][0]-sum/count) > 1e-12 {
									return fmt.Errorf("step %d: the mean of parameter %d is %v, want %v", step, i, g[i][0], sum/count)
								}
							}
						}
						return nil
					})
					if err != nil {
						return err
					}
					for i := range g {
						g[i][0] = float64(rank)
						r.Ready(i)
					}
					if err := r.Wait(bg); err != nil {
						return err
					}
					if err := equal("mean of all", g[1][0], 1.5); err != nil {
						return err
					}
				}
				if opts.Buffers != nil {
					// Rank 0's at first, then those of the lowest rank that trains.
					if err := equal("buffer", opts.Buffers[0][0], 0); err != nil {
						return err
					}
				}
				return r.Close()
			})
		}
	}
}

// After Join all ranks have the parameters of a rank that trained longest.
func TestJoinShares(t *testing.T) {
	all(t, 3, func(rank int) error {
		v := []float64{0}
		r, err := ddp.New(bg, nil, []ddp.Parameter[float64]{{Name: "v", Data: v}}, ddp.Options[float64]{})
		if err != nil {
			return err
		}
		err = r.Join(bg, func() error {
			for range rank + 1 {
				r.Grad(0)[0] = 1
				r.Ready(0)
				if err := r.Wait(bg); err != nil {
					return err
				}
				v[0] += r.Grad(0)[0]
			}
			return nil
		})
		return errors.Join(err, equal("parameter", v[0], 3), r.Close())
	})
}

// If training fails on one rank, Join fails on all.
func TestJoinFails(t *testing.T) {
	for rank, err := range spawn(t, 3, func(rank int) error {
		r, _, err := three(ddp.Options[float64]{}, true)
		if err != nil {
			return err
		}
		return r.Join(bg, func() error {
			if rank == 2 {
				return errors.New("no more data")
			}
			if rank == 0 {
				return nil
			}
			for i := range 3 {
				r.Ready(i)
			}
			return r.Wait(bg)
		})
	}) {
		require.ErrorContains(t, err, "no more data", "rank %d", rank)
	}
}

// A rank that ends in the middle of backward, by an error or a panic, is named by all others.
func TestRankThatEnds(t *testing.T) {
	for _, how := range []string{"error", "panic"} {
		t.Run(how, func(t *testing.T) {
			errs := make([]error, 3)
			err := dist.Spawn(func(_ context.Context, rank int) error {
				if err := dist.InitProcessGroup("ccl"); err != nil {
					return err
				}
				r, _, err := three(ddp.Options[float64]{}, true)
				if err != nil {
					return err
				}
				r.Ready(2)
				if rank == 1 {
					if how == "panic" {
						panic("backward is wrong")
					}
					return errors.New("backward is wrong")
				}
				r.Ready(1)
				r.Ready(0)
				errs[rank] = r.Wait(bg)
				return errs[rank]
			}, dist.WithRanks(3))
			require.ErrorContains(t, err, "backward is wrong")
			for _, rank := range []int{0, 2} {
				require.ErrorContains(t, errs[rank], fmt.Sprintf("ddp: rank %d: bucket ", rank))
				var aborted *ccl.AbortedError
				require.ErrorAs(t, errs[rank], &aborted)
				require.Equal(t, 1, aborted.By)
			}
		})
	}
}

// A warm step allocates nothing.
func TestAllocations(t *testing.T) {
	const runs = 100
	for _, views := range []bool{false, true} {
		all(t, 2, func(rank int) error {
			r, g, err := three(ddp.Options[float64]{}, views)
			if err != nil {
				return err
			}
			step := func() {
				for i := range g {
					r.Ready(2 - i)
				}
				if err := r.Wait(bg); err != nil {
					panic(err)
				}
			}
			for range 20 {
				step()
			}
			if rank == 1 {
				for range runs + 1 {
					step()
				}
				return r.Close()
			}
			n := testing.AllocsPerRun(runs, step)
			if n > 0.5 { // of both ranks
				return fmt.Errorf("views %v: a step allocates %v times", views, n)
			}
			return r.Close()
		})
	}
}
