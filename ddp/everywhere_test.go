package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// Ranks that share each batch follow one rank that has it all, and have equal parameters bit by bit: with and
// without copies, with whole batches and with parts that are accumulated.
func TestFollowsOneRank(t *testing.T) {
	_, want := alone()
	everywhere(t, "follow one rank", 1, func(t *testing.T, all []outcome) {
		succeeded(t, all)
		for rank, o := range all {
			require.Len(t, o.Values, 4*len(want))
			require.Equal(t, all[0].Values, o.Values, "rank %d", rank)
			for trained := range slices.Chunk(o.Values, len(want)) {
				require.InDeltaSlice(t, want, trained, 1e-9)
			}
		}
	})
}

func followOneRank(rank, ranks int, o *outcome) error {
	losses, _ := alone()
	if losses[steps-1] >= losses[0] {
		return errors.New("one rank does not learn")
	}
	for _, views := range []bool{false, true} {
		for _, parts := range []int{1, 3} { // with NoSync
			n := newNet[float64](uint64(rank)) // rank 0's are those of alone
			r, err := ddp.New(bg, world(), n.parameters(views), tiny())
			if err != nil {
				return err
			}
			n.adopt(r)
			for step, b := range batches(steps, batch) {
				loss, err := trainInParts(r, n, b[rank*batch/ranks:(rank+1)*batch/ranks], parts, ranks)
				if err != nil {
					return err
				}
				n.update(0.3)
				mean := []float64{loss}
				if err := dist.AllReduce(mean, dist.Avg); err != nil {
					return err
				}
				if math.Abs(mean[0]-losses[step]) > 1e-9 {
					return fmt.Errorf("views %v, %d parts, step %d: the loss is %v, want %v", views, parts, step, mean[0], losses[step])
				}
			}
			o.Values = append(o.Values, n.flat()...)
			s := r.Stats()
			if err := errors.Join(equal("steps", s.Steps, steps), equal("bytes", s.Bytes, 8*(3*width+1)), equal("buckets", s.Buckets, 3), r.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// trainInParts makes a step of which all parts but the last are accumulated, and returns the loss.
func trainInParts(r *ddp.Reducer, n *net[float64], mine [][2]float64, parts, ranks int) (loss float64, err error) {
	each := (len(mine) + parts - 1) / parts
	err = r.NoSync(func() error {
		for len(mine) > each {
			loss += n.backward(mine[:each], float64(batch)/float64(ranks*each), r.Ready)
			mine = mine[each:]
			if err := r.Wait(bg); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	loss += n.backward(mine, float64(batch)/float64(ranks*len(mine)), r.Ready)
	return loss, r.Wait(bg)
}

// Ranks with different numbers of steps get exact means, and the parameters of those that trained longest.
func TestJoin(t *testing.T) { everywhere(t, "uneven inputs", 1, succeeded) }

func unevenInputs(rank, ranks int, _ *outcome) error {
	for _, views := range []bool{false, true} {
		buffer := []float64{float64(rank)}
		for _, opts := range []ddp.Options{{}, {FindUnused: true}, {StaticGraph: true}, {BroadcastBuffers: true, Buffers: []ddp.Tensor{ddp.Buffer("rank", buffer)}}} {
			r, g, err := three(opts, views)
			if err != nil {
				return err
			}
			for range 2 { // twice, with steps of all ranks between
				if err := r.Join(bg, func() error { return trainUnevenly(r, g, rank, ranks) }); err != nil {
					return err
				}
				for i := range g {
					g[i][0] = float64(rank)
					r.Ready(i)
				}
				if err := r.Wait(bg); err != nil {
					return err
				}
				if err := equal("mean of all", g[1][0], float64(ranks-1)/2); err != nil {
					return err
				}
			}
			if opts.Buffers != nil {
				// Rank 0's at first, then those of the lowest rank that trains.
				if err := equal("buffer", buffer[0], 0); err != nil {
					return err
				}
			}
			if err := r.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// trainUnevenly makes this rank's steps and checks their means.
func trainUnevenly(r *ddp.Reducer, g [][]float64, rank, ranks int) error {
	all := []int{2, 0, 5, 3, 1, 5, 4}[:ranks]
	for step := range all[rank] {
		var sum, count float64
		for other, steps := range all {
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
}

// With FindUnused a parameter that some rank leaves out counts as zero there; one that all leave out keeps its
// gradient.
func TestFindUnused(t *testing.T) { everywhere(t, "unused", 1, succeeded) }

func leaveOut(rank, ranks int, _ *outcome) error {
	for _, views := range []bool{false, true} {
		r, g, err := three(ddp.Options{FindUnused: true}, views)
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
			if rank == ranks-1 {
				g[1][0] = float64(2 * ranks)
				r.Ready(1)
			}
			g[2][0] = float64(rank)
			r.Ready(2)
			if err := r.Wait(bg); err != nil {
				return err
			}
			if err := errors.Join(equal("a", g[0][0], kept), equal("b", g[1][0], 2), equal("c", g[2][0], float64(ranks-1)/2)); err != nil {
				return err
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// A gradient that is not ready is an error on all ranks, which names the rank and the parameter. The group of
// the program is not affected.
func TestNotReady(t *testing.T) {
	everywhere(t, "not ready", 1, func(t *testing.T, all []outcome) {
		last := len(all) - 1
		for rank, o := range all {
			require.Contains(t, o.Err, "ddp: no gradient was ready for a, b: call Ready for each, or set FindUnused if a step may leave parameters out")
			if rank < last {
				require.Contains(t, o.Err, "ddp: bucket 1 (b)")
				require.Contains(t, o.Err, fmt.Sprintf("rejected on rank %d (ddp: no gradient", last))
				require.Contains(t, o.Err, "ranks disagree on arguments")
			}
		}
	})
}

// The rank that returns an error stands in the error's beginning, and not in each part of it.
func TestErrorHasItsRankOnce(t *testing.T) {
	const ranks = 3
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		return notReady(rank, ranks, nil)
	}, dist.WithRanks(ranks))
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		rank := err.(*dist.RankError).Rank
		begin := "ddp: bucket 1 (b): all_reduce "
		if rank == ranks-1 {
			begin = "ddp: no gradient was ready for a, b: "
		}
		require.True(t, strings.HasPrefix(err.Error(), fmt.Sprintf("rank %d: %s", rank, begin)), err.Error())
		require.NotContains(t, err.Error(), fmt.Sprintf(", rank %d: ", rank))
	}
}

func notReady(rank, ranks int, _ *outcome) error {
	r, _, err := three(ddp.Options{}, true)
	if err != nil {
		return err
	}
	for i := range 3 {
		if rank < ranks-1 || i == 2 {
			r.Ready(i)
		}
	}
	wrong := r.Wait(bg)
	if own, ok := errors.AsType[*ddp.UnreadyError](wrong); ok != (rank == ranks-1) || ok && !slices.Equal(own.Parameters, []string{"a", "b"}) {
		return fmt.Errorf("the error is %#v", wrong)
	}
	if err := dist.Barrier(); err != nil { // the program goes on
		return fmt.Errorf("the program does not go on: %w", err)
	}
	return wrong
}

// A rank that ends in the middle of backward, by an error or a panic, is named by all others, with the
// parameters of the bucket.
func TestRankThatEnds(t *testing.T) {
	for _, name := range []string{"error", "panic"} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, name, 2, func(t *testing.T, all []outcome) {
				last := len(all) - 1
				require.Contains(t, all[last].Err, "backward is wrong")
				for rank, o := range all[:last] {
					require.Regexp(t, `^ddp: bucket \d \([abc]\): `, o.Err, "rank %d", rank)
					require.Contains(t, o.Err, "backward is wrong")
					require.NotNil(t, o.AbortedBy, o.Err)
					require.Equal(t, last, *o.AbortedBy)
				}
			})
		})
	}
}

func endByError(rank, ranks int, _ *outcome) error {
	return endInBackward(rank, ranks, func() error { return errors.New("backward is wrong") })
}

func endByPanic(rank, ranks int, _ *outcome) error {
	return endInBackward(rank, ranks, func() error { panic("backward is wrong") })
}

// endInBackward makes a step in which the last rank ends when the first gradient is ready.
func endInBackward(rank, ranks int, end func() error) error {
	r, _, err := three(ddp.Options{}, true)
	if err != nil {
		return err
	}
	r.Ready(2)
	if rank == ranks-1 {
		return end()
	}
	r.Ready(1)
	r.Ready(0)
	return r.Wait(bg)
}

// A process that is killed in backward is named by all others, with the parameters of the bucket.
func TestKilledRank(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks are processes on Linux only")
	}
	for _, ranks := range []int{2, 3, 4, 7} {
		t.Run(fmt.Sprint("processes=", ranks), func(t *testing.T) {
			all := onProcesses(t, "kill", ranks)
			for rank, o := range all[:ranks-1] {
				require.Regexp(t, `^ddp: bucket \d \([abc]\): `, o.Err, "rank %d", rank)
				require.NotNil(t, o.Lost, o.Err)
				require.Equal(t, ranks-1, *o.Lost)
			}
		})
	}
}

func endByKill(rank, ranks int, _ *outcome) error {
	return endInBackward(rank, ranks, func() error {
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		if err := p.Kill(); err != nil {
			return err
		}
		select {} // until the signal comes
	})
}
