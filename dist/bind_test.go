package dist_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer is what a goroutine learns about itself.
type answer struct {
	rank    int
	rankErr error
	reduce  error // of a collective that no other goroutine joins
}

// A rank is known in its worker's goroutine, in goroutines started with Go, and to
// GetRank in goroutines that inherit the worker's labels; nowhere else.
func TestWhoKnowsItsRank(t *testing.T) {
	// A goroutine that no worker started runs functions for workers.
	requests := make(chan func())
	var unbound sync.WaitGroup
	unbound.Go(func() {
		for f := range requests {
			f()
		}
	})
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		assert.Equal(t, answer{rank: rank}, ask(), "worker")

		var a answer
		assert.Equal(t, answer{rank: rank}, in(dist.Go, ask), "dist.Go")
		assert.Equal(t, answer{rank: rank}, in(dist.Go, func() answer { return in(dist.Go, ask) }), "dist.Go twice")

		a = in(plain, ask)
		assert.Equal(t, rank, a.rank, "child")
		assert.NoError(t, a.rankErr)
		assert.ErrorIs(t, a.reduce, dist.ErrUnbound)
		a = in(plain, func() answer { return in(dist.Go, ask) })
		assert.Equal(t, rank, a.rank, "dist.Go has no rank to give to a child of a child")
		assert.ErrorIs(t, a.reduce, dist.ErrUnbound)

		answers := make(chan answer)
		requests <- func() { answers <- ask() }
		a = <-answers
		assert.Equal(t, 0, a.rank, "unbound")
		assert.NoError(t, a.rankErr)
		assert.ErrorIs(t, a.reduce, dist.ErrUnbound)
		return dist.Barrier()
	}), dist.WithRanks(3))
	close(requests)
	unbound.Wait()
	require.NoError(t, err)
}

// Foreign profiler labels do not change a bound goroutine's rank; unbound goroutines that
// inherit them have no rank.
func TestForeignLabels(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		pprof.Do(context.Background(), pprof.Labels("ccl.rank", "7"), func(context.Context) {
			assert.Equal(t, answer{rank: rank}, ask())
			assert.Equal(t, answer{rank: rank}, in(dist.Go, ask))
			a := in(plain, ask)
			assert.Equal(t, 0, a.rank)
			assert.ErrorIs(t, a.reduce, dist.ErrUnbound)
		})
		// Do has removed all labels on its return, since it was not given ctx.
		assert.Equal(t, answer{rank: rank}, ask())
		assert.Equal(t, 0, in(plain, ask).rank)

		label, ok := pprof.Label(ctx, "ccl.rank")
		assert.True(t, ok)
		assert.Equal(t, []string{"0", "1", "2"}[rank], label)
		return dist.Barrier()
	}), dist.WithRanks(3))
	require.NoError(t, err)
}

// A pool started by one rank must not act for another.
func TestPoolOfAnotherRank(t *testing.T) {
	pool := make(chan func())
	var workers sync.WaitGroup
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if rank == 2 {
			for range 3 {
				workers.Go(func() {
					for f := range pool {
						f()
					}
				})
			}
		}
		if err := dist.Barrier(); err != nil {
			return err
		}
		group, err := dist.Default()
		if err != nil {
			return err
		}
		tensor := []int64{int64(rank)}
		magic, explicit := make(chan error), make(chan error)
		pool <- func() { magic <- dist.AllReduce(tensor, dist.Sum) }
		assert.EqualError(t, reason(t, <-magic), "dist: this goroutine has no rank, and the process hosts 3: "+
			"call from the worker's own goroutine of dist.Spawn, start this one with dist.Go, or pass dist.WithGroup")
		pool <- func() { explicit <- dist.AllReduce(tensor, dist.Sum, dist.WithGroup(group)) }
		assert.NoError(t, <-explicit)
		assert.Equal(t, []int64{3}, tensor)
		return dist.Barrier()
	}), dist.WithRanks(3))
	close(pool)
	workers.Wait()
	require.NoError(t, err)
}

// Properties that are the same on all ranks need no rank; calls that act for a rank do.
func TestWithoutRank(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		in(plain, func() error {
			assert.True(t, dist.IsInitialized())
			size, err := dist.GetWorldSize()
			assert.NoError(t, err)
			assert.Equal(t, 2, size)
			name, err := dist.GetBackend()
			assert.NoError(t, err)
			assert.Equal(t, "ccl", name)

			_, err = dist.Default()
			assert.ErrorIs(t, err, dist.ErrUnbound)
			assert.ErrorIs(t, dist.InitProcessGroup("ccl"), dist.ErrUnbound)
			assert.ErrorIs(t, dist.DestroyProcessGroup(), dist.ErrUnbound)
			assert.ErrorIs(t, dist.Barrier(), dist.ErrUnbound)
			assert.ErrorIs(t, dist.Broadcast([]float32{1}, 0), dist.ErrUnbound)
			assert.ErrorIs(t, dist.AllGatherV(make([]float32, 2), []float32{1}, []int{1, 1}), dist.ErrUnbound)
			return nil
		})
		return dist.Barrier()
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// Before InitProcessGroup no goroutine gets a rank, bound or not.
func TestNoRankBeforeInit(t *testing.T) {
	err := spawn(t, func(ctx context.Context, rank int) error {
		for _, where := range []func(func()){now, dist.Go, plain} {
			a := in(where, ask)
			assert.ErrorIs(t, a.rankErr, dist.ErrNotInitialized)
			assert.False(t, in(where, dist.IsInitialized))
		}
		return nil
	}, dist.WithRanks(2))
	require.NoError(t, err)
}

// A process that hosts exactly one rank is that rank on every goroutine.
func TestOneRankIsEverywhere(t *testing.T) {
	use := func(t *testing.T) {
		require.Equal(t, answer{}, in(plain, ask))
		require.Equal(t, answer{}, in(dist.Go, ask))
		group := in(plain, func() *dist.ProcessGroup {
			g, err := dist.Default()
			assert.NoError(t, err)
			return g
		})
		require.Equal(t, 0, group.Rank())
		require.Equal(t, 1, group.Size())
		require.Equal(t, 1, group.Communicator().Size())
		require.NoError(t, in(plain, func() error { return dist.DestroyProcessGroup() }))
		require.ErrorIs(t, dist.DestroyProcessGroup(), dist.ErrNotInitialized)
	}
	t.Run("without Spawn", func(t *testing.T) {
		require.NoError(t, in(plain, func() error { return dist.InitProcessGroup("ccl") }))
		use(t)
	})
	t.Run("Spawn of one", func(t *testing.T) {
		require.NoError(t, spawn(t, func(ctx context.Context, rank int) error {
			if err := in(plain, func() error { return dist.InitProcessGroup("ccl") }); err != nil {
				return err
			}
			use(t)
			return nil
		}, dist.WithRanks(1)))
	})
}

// A process of one rank is that rank at every moment, whichever goroutine initialises.
func TestOneRankIsNeverUnbound(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := dist.GetRank(); err != nil && !errors.Is(err, dist.ErrNotInitialized) {
				t.Error(err)
				return
			}
			if err := dist.Barrier(); errors.Is(err, dist.ErrUnbound) {
				t.Error(err)
				return
			}
		}
	}()
	for range 1000 {
		require.NoError(t, dist.InitProcessGroup("ccl"))
		require.NoError(t, dist.DestroyProcessGroup())
	}
	close(stop)
	<-stopped
}

// Rank state belongs to its job: two jobs, as in tests that run in parallel, stay apart.
func TestTwoJobs(t *testing.T) {
	var both, asked sync.WaitGroup // both run; neither ends before this goroutine has asked
	both.Add(2)
	asked.Add(1)
	errs := make(chan error)
	for _, ranks := range []int{2, 3} {
		go func() {
			errs <- dist.Spawn(initialised(func(ctx context.Context, rank int) error {
				if rank == 0 {
					both.Done()
				}
				both.Wait()
				tensor := []int32{1}
				if err := dist.AllReduce(tensor, dist.Sum); err != nil {
					return err
				}
				assert.Equal(t, []int32{int32(ranks)}, tensor)
				assert.Equal(t, rank, in(plain, ask).rank, "labels are not mixed up")
				size, err := dist.GetWorldSize()
				assert.Equal(t, ranks, size)
				asked.Wait()
				return err
			}), dist.WithRanks(ranks))
		}()
	}
	within(t, func() {
		both.Wait()
		const text = "dist: this goroutine has no rank, and 2 jobs live in this process: " +
			"start it with dist.Go from a goroutine that has a rank, or pass dist.WithGroup"
		_, err := dist.GetRank()
		assert.EqualError(t, err, text)
		_, err = dist.GetWorldSize()
		assert.EqualError(t, err, text)
		assert.EqualError(t, reason(t, dist.Barrier()), text)
		assert.EqualError(t, dist.InitProcessGroup("ccl"), text)
		assert.False(t, dist.IsInitialized())
		asked.Done()
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
	})
}

// A worker may call Spawn: it keeps its rank in its own job, and the inner workers have ranks in
// the inner job.
func TestSpawnInSpawn(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, outer int) error {
		err := dist.Spawn(initialised(func(ctx context.Context, inner int) error {
			got, err := dist.GetRank()
			assert.Equal(t, inner, got)
			return err
		}), dist.WithRanks(3), dist.WithSpawnContext(ctx))
		got, rankErr := dist.GetRank()
		assert.Equal(t, outer, got)
		return errors.Join(err, rankErr, dist.Barrier())
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// A binding ends with the worker: a goroutine that outlives it has no rank, and gets none
// of another job.
func TestGoOutlivesWorker(t *testing.T) {
	ended, checked := make(chan struct{}), make(chan struct{})
	err := spawn(t, func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		if rank == 1 {
			dist.Go(func() {
				defer close(checked)
				<-ended
				const text = "dist: the worker of rank 1 has ended, and its process group with it: let it wait for the goroutines that make calls"
				assert.EqualError(t, reason(t, dist.Barrier()), text)
				assert.EqualError(t, dist.InitProcessGroup("ccl"), text)
				assert.EqualError(t, dist.DestroyProcessGroup(), text)
				_, err := dist.GetRank()
				assert.EqualError(t, err, text)
				assert.False(t, dist.IsInitialized())
			})
		}
		return dist.Barrier()
	}, dist.WithRanks(2))
	require.NoError(t, err)
	close(ended)
	<-checked
}

// A hundred thousand goroutines, and the workers, leave no bindings behind.
func TestBindingsDoNotLeak(t *testing.T) {
	const ranks, children = 2, 50_000
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		var all sync.WaitGroup
		limit := make(chan struct{}, 100)
		for range children {
			limit <- struct{}{}
			all.Add(1)
			dist.Go(func() {
				defer all.Done()
				if got, err := dist.GetRank(); got != rank || err != nil {
					t.Errorf("a child of rank %d is rank %d: %v", rank, got, err)
				}
				<-limit
			})
		}
		all.Wait()
		return dist.Barrier()
	}), dist.WithRanks(ranks))
	require.NoError(t, err)
	require.Zero(t, dist.Labels())
	within(t, func() {
		for dist.Bound() != 0 { // the last children are about to remove theirs
			runtime.Gosched()
		}
	})
}

// ask returns what the calling goroutine is. Every rank rejects the collective by itself,
// so that it waits for no other rank.
func ask() (a answer) {
	a.rank, a.rankErr = dist.GetRank()
	if _, err := dist.Default(); err != nil {
		a.reduce = dist.AllReduce([]int64{1}, dist.Sum)
	}
	return a
}

// in runs f in the goroutine that `where` chooses and returns its answer.
func in[T any](where func(func()), f func() T) T {
	answers := make(chan T, 1)
	where(func() { answers <- f() })
	return <-answers
}

func plain(f func()) { go f() }

func now(f func()) { f() }

// A nil function is ignored, with a rank and without.
func TestGoNothing(t *testing.T) {
	before := dist.Bound()
	dist.Go(nil)
	err := spawn(t, func(context.Context, int) error {
		dist.Go(nil)
		return nil
	}, dist.WithRanks(2))
	require.NoError(t, err)
	require.Equal(t, before, dist.Bound())
}
