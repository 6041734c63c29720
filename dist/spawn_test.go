package dist_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/golden"
	"github.com/goccl/goccl/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpawnRefuses(t *testing.T) {
	texts := golden.Errors(t)
	require.EqualError(t, dist.Spawn(nil), "dist: spawn: the worker is nil")
	for n, text := range map[int]string{
		0:     "dist: spawn: dist.WithRanks(0): from 1 to 65536 ranks are possible",
		-1:    "dist: spawn: dist.WithRanks(-1): from 1 to 65536 ranks are possible",
		65537: "dist: spawn: dist.WithRanks(65537): from 1 to 65536 ranks are possible",
	} {
		err := dist.Spawn(func(context.Context, int) error { panic("started") }, dist.WithRanks(n))
		texts.Add(fmt.Sprint(n), err)
		require.EqualError(t, err, text)
		var invalid *dist.InvalidArgumentError
		require.ErrorAs(t, err, &invalid)
	}
}

// The number of ranks: WithRanks, else the configuration's, else the usable cores.
func TestHowManyRanks(t *testing.T) {
	t.Chdir(t.TempDir())
	count := func(opts ...dist.SpawnOption) int {
		var started, size interleave.Int64
		err := spawn(t, initialised(func(context.Context, int) error {
			started.Add(1)
			n, err := dist.GetWorldSize()
			size.Store(int64(n))
			return err
		}), opts...)
		require.NoError(t, err)
		require.Equal(t, started.Load(), size.Load())
		return int(started.Load())
	}
	require.Equal(t, 5, count(dist.WithRanks(5)))
	require.Equal(t, 3, count(dist.WithRanks(5), dist.WithRanks(3)), "the later option holds")
	require.Equal(t, runtime.GOMAXPROCS(0), count())
	require.Equal(t, 3, count(dist.WithSpawnConfigFile(configFile(t, "world_size: 3"))))
	t.Setenv("GOCCL_CONFIG", configFile(t, "world_size: 4"))
	require.Equal(t, 4, count())
}

// A failing worker ends the calls of its peers, which name it; Spawn returns
// the error of every rank, the root cause first.
func TestWorkerFails(t *testing.T) {
	broken := errors.New("out of memory")
	for name, end := range map[string]struct {
		worker func() error
		is     error
		text   string
	}{
		"error":  {func() error { return broken }, broken, "out of memory"},
		"panic":  {func() error { panic(broken) }, broken, "the worker panicked: out of memory"},
		"goexit": {func() error { runtime.Goexit(); return nil }, dist.ErrGoexit, "worker ended by runtime.Goexit and did not return"},
	} {
		t.Run(name, func(t *testing.T) {
			var causes perRank[error]
			err := spawn(t, func(ctx context.Context, rank int) error {
				if err := dist.InitProcessGroup("ccl"); err != nil {
					return err
				}
				if rank == 2 {
					return end.worker()
				}
				err := dist.AllReduce([]float32{1}, dist.Sum)
				again := dist.Barrier()
				<-ctx.Done() // cancelled by rank 2's failure
				causes.put(rank, context.Cause(ctx))

				var aborted *dist.AbortedError
				if assert.ErrorAs(t, err, &aborted) {
					assert.Equal(t, 2, aborted.By)
				}
				assert.ErrorContains(t, err, ": aborted by rank 2: "+end.text)
				assert.Equal(t, 1, strings.Count(err.Error(), "rank 2"), "each rank stands there once: %v", err)
				assert.NotContains(t, err.Error(), "\n", "no stack: it is rank 2's to show")
				assert.ErrorAs(t, again, &aborted, "the first cause, at once")
				assert.ErrorIs(t, again, dist.ErrInvalidCommunicator)
				return err
			}, dist.WithRanks(4))

			require.ErrorIs(t, err, end.is)
			errs := err.(interface{ Unwrap() []error }).Unwrap()
			require.Len(t, errs, 4)
			for i, err := range errs {
				rank, ok := err.(*dist.RankError)
				require.True(t, ok)
				require.Equal(t, i == 0, rank.Rank == 2, "the root cause first")
			}
			require.ErrorContains(t, errs[0], "rank 2: "+end.text)
			for rank := range 4 {
				if rank != 2 {
					var cause *dist.RankError
					require.ErrorAs(t, causes.values[rank], &cause)
					require.Equal(t, 2, cause.Rank)
				}
			}
			require.Zero(t, dist.Bound())
		})
	}
}

func thisPanics() error { panic("at the disco") }

// The stack of a panic is shown once, by the rank that panicked.
func TestPanicShowsItsStack(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if rank == 1 {
			return thisPanics()
		}
		return dist.Barrier()
	}), dist.WithRanks(3))
	var p *dist.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, 1, p.Rank)
	require.Equal(t, "at the disco", p.Value)
	require.EqualError(t, p, "the worker panicked: at the disco")
	require.True(t, strings.HasPrefix(err.Error(), "rank 1: the worker panicked: at the disco\n\ngoroutine "), err.Error())
	require.Equal(t, 1, strings.Count(err.Error(), "dist_test.thisPanics("))
}

// together makes the workers return their errors after all of them have one, since a worker
// that fails ends the calls of its peers.
func together(ranks int, w worker) worker {
	var failed sync.WaitGroup
	failed.Add(ranks)
	return func(ctx context.Context, rank int) error {
		err := w(ctx, rank)
		failed.Done()
		failed.Wait()
		return err
	}
}

// The text of Spawn's error has each reason once, with the ranks that it is of.
func TestSpawnTextIsShort(t *testing.T) {
	texts := golden.Errors(t)
	const ranks = 4
	for name, c := range map[string]struct {
		call func(rank int) error
		text string // a regular expression
	}{
		"one reason": {
			func(int) error { return dist.AllReduce([]int32{}, dist.Sum) },
			`ranks 0-3: ccl: all_reduce: tensor has 0 elements, want 1 or more \(call 1 at dist/spawn_test.go:\d+\)`,
		},
		"two reasons in turn": {
			func(rank int) error { return dist.AllGather(make([]int32, 2+rank%2), make([]int32, 1)) },
			`ranks (0, 2|1, 3): ccl: all_gather: output has [23] elements, want 4 \(call 1 at [^\n]*\)\n` +
				`ranks (0, 2|1, 3): ccl: all_gather: output has [23] elements, want 4 \(call 1 at [^\n]*\)`,
		},
		"one rank refuses": {
			func(rank int) error { return dist.AllReduce([][]int32{{1}, {}}[rank%2*(rank/3)], dist.Sum) },
			`rank 3: ccl: all_reduce: tensor has 0 elements, want 1 or more \(call 1 at [^\n]*\)\n` +
				// At most two lines: a rank that comes late finds that the group has failed before.
				`(ranks? [\d, -]+: ccl: all_reduce[^\n]*: ranks disagree on arguments: ` +
				`[^\n]*rejected on rank 3 \(ccl: all_reduce: tensor has 0 elements, want 1 or more\)[^\n]*\n?){1,2}`,
		},
		"all differ": {
			func(rank int) error {
				return dist.AllReduce(make([]int32, 8), []dist.ReduceOp{dist.Sum, dist.Max}[rank/3])
			},
			`ranks 0-3: ccl: all_reduce of 8 int32 by \w+, call 1 at dist/spawn_test.go:\d+: ranks disagree on op: sum on ranks 0-2; max on rank 3`,
		},
		"cancelled": {
			func(int) error {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				return dist.Barrier(dist.WithContext(ctx))
			},
			`ranks 0-3: ccl: barrier: cancelled before the call began: context canceled \(call 1 at [^\n]*\)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := spawn(t, initialised(together(ranks, func(_ context.Context, rank int) error { return c.call(rank) })), dist.WithRanks(ranks))
			if name != "one rank refuses" && name != "two reasons in turn" { // in these texts the order of ranks differs
				texts.Add(name, err)
			}
			require.Regexp(t, "^"+c.text+"$", err.Error())
			require.Len(t, err.(interface{ Unwrap() []error }).Unwrap(), ranks, "no error is lost")
		})
	}
}

// If all ranks make the same mistake, and some only after the first has failed the group by it, the text has it once.
func TestSpawnTextHasOneMistakeOnce(t *testing.T) {
	texts := golden.Errors(t)
	for name, c := range map[string]struct {
		tensor []int32
		text   string
	}{
		"empty": {[]int32{}, `ccl: all_reduce: tensor has 0 elements, want 1 or more`},
		"nil":   {nil, `dist: all_reduce: the tensor is nil: tensor has 0 elements, want 1 or more`},
	} {
		t.Run(name, func(t *testing.T) {
			err := spawn(t, initialised(func(ctx context.Context, rank int) error {
				if rank > 0 {
					<-ctx.Done() // rank 0 has failed
				}
				return dist.AllReduce(c.tensor, dist.Sum)
			}), dist.WithRanks(4))
			texts.Add(name, err)
			for _, err := range err.(interface{ Unwrap() []error }).Unwrap()[1:] {
				texts.Add(name+", of one rank", errors.Unwrap(err))
			}
			require.Regexp(t, `^ranks 0-3: `+c.text+` \(call 1 at dist/spawn_test.go:\d+\)$`, err.Error())
			for _, err := range err.(interface{ Unwrap() []error }).Unwrap()[1:] {
				require.ErrorContains(t, err, "want 1 or more (call 1 at ")
				require.ErrorIs(t, err, dist.ErrInvalidCommunicator)
				var aborted *dist.AbortedError
				require.ErrorAs(t, err, &aborted)
				require.Zero(t, aborted.By)
			}
		})
	}
}

// If many ranks fail, each for a reason of its own, the text names the ranks whose errors it
// does not show.
func TestSpawnTextNamesAllRanks(t *testing.T) {
	const ranks = 11
	err := spawn(t, together(ranks, func(_ context.Context, rank int) error { return fmt.Errorf("reason %c", 'a'+rank) }), dist.WithRanks(ranks))
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 9)
	require.Regexp(t, `^\(and other errors on ranks [\d, -]+\)$`, lines[8])
	var shown []int
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap()[8:] {
		shown = append(shown, err.(*dist.RankError).Rank)
	}
	slices.Sort(shown)
	require.Equal(t, "(and other errors on "+transport.RanksText(shown)+")", lines[8])
}

// fakeT is a test that fails without failing this one.
type fakeT struct{ message string }

func (f *fakeT) Errorf(format string, args ...any) { f.message = fmt.Sprintf(format, args...) }
func (f *fakeT) FailNow()                          { runtime.Goexit() }

// A failure of testify's require in a worker ends the worker, and the others do not hang.
func TestRequireInWorker(t *testing.T) {
	fake := &fakeT{}
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if rank == 0 {
			require.Equal(fake, 1, 2)
		}
		return dist.Barrier()
	}), dist.WithRanks(2))
	require.Contains(t, fake.message, "Not equal")
	require.ErrorIs(t, err, dist.ErrGoexit)
	require.ErrorContains(t, err, "rank 0: worker ended by runtime.Goexit and did not return "+
		"(a test's FailNow, Fatal and Skip end their goroutine this way, and so does testify's require)\n"+
		"rank 1: ccl: barrier")
}

// A worker that returns nil has left: ranks that still need it get that error.
func TestWorkerLeaves(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if err := dist.Barrier(); err != nil {
			return err
		}
		if rank == 1 {
			return nil
		}
		err := dist.Barrier()
		var lost *dist.PeerLostError
		if assert.ErrorAs(t, err, &lost) {
			assert.Equal(t, 1, lost.Rank)
		}
		return nil
	}), dist.WithRanks(3))
	require.NoError(t, err)
}

// A worker that returned its cancelled context's error comes after the one that caused the
// cancellation, whichever returned first.
func TestRootCauseFirst(t *testing.T) {
	broken := errors.New("no more data")
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		switch rank {
		case 0:
			<-ctx.Done()
			return ctx.Err()
		case 1:
			<-ctx.Done()
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		case 3:
			return broken
		}
		return dist.Barrier()
	}), dist.WithRanks(4))
	errs := err.(interface{ Unwrap() []error }).Unwrap()
	require.Len(t, errs, 4)
	require.EqualError(t, errs[0], "rank 3: no more data")
	texts := []string{errs[1].Error(), errs[2].Error(), errs[3].Error()}
	require.Contains(t, texts, "rank 0: context canceled")
	require.Contains(t, texts, "rank 1: stopped: rank 3: no more data")
}

// The rank whose own context was cancelled is the cause, also if it returns last.
func TestCancelledRankIsTheRootCause(t *testing.T) {
	var others sync.WaitGroup
	others.Add(2)
	err := spawn(t, initialised(func(_ context.Context, rank int) error {
		ctx := context.Background()
		if rank == 2 {
			c, cancel := context.WithCancel(ctx)
			dist.Go(cancel)
			ctx = c
		}
		for {
			err := dist.Barrier(dist.WithContext(ctx))
			if err == nil {
				continue
			}
			if rank != 2 {
				others.Done()
				return err
			}
			// If the call was rejected because the context had ended before it, the caller must end
			// the group.
			group, _ := dist.Default()
			group.Communicator().Abort(err)
			others.Wait()
			return err
		}
	}), dist.WithRanks(3))
	require.ErrorIs(t, err, context.Canceled)
	errs := err.(interface{ Unwrap() []error }).Unwrap()
	require.Len(t, errs, 3)
	require.Equal(t, 2, errs[0].(*dist.RankError).Rank, "%v", err)
}

// Spawn waits for all workers, also for those not affected by the failure.
func TestSpawnWaitsForAll(t *testing.T) {
	var ended interleave.Int64
	failed := make(chan struct{})
	err := spawn(t, func(ctx context.Context, rank int) error {
		defer ended.Add(1)
		if rank == 0 {
			defer close(failed)
			return errors.New("early")
		}
		<-failed
		<-ctx.Done()
		return nil
	}, dist.WithRanks(5))
	require.EqualError(t, err, "rank 0: early")
	require.EqualValues(t, 5, ended.Load())
}

// WithSpawnContext is the parent of the workers' contexts and ends their calls.
func TestWithSpawnContext(t *testing.T) {
	type key struct{}
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		assert.Equal(t, "value", ctx.Value(key{}))
		if rank == 1 {
			cancel()
			<-ctx.Done()
			return nil
		}
		err := dist.Barrier()
		assert.ErrorIs(t, err, context.Canceled)
		return nil
	}), dist.WithRanks(2), dist.WithSpawnContext(parent))
	require.NoError(t, err)
}

// A nil context is ignored.
func TestNilContexts(t *testing.T) {
	err := spawn(t, initialised(func(context.Context, int) error {
		return dist.Barrier(dist.WithContext(nil)) //nolint:staticcheck // that is the point
	}), dist.WithRanks(2), dist.WithSpawnContext(nil)) //nolint:staticcheck // that is the point
	require.NoError(t, err)
}
