package dist_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

// Any other backend name is an error at once, before anything is loaded.
func TestUnknownBackend(t *testing.T) {
	t.Setenv("GOCCL_CONFIG", "does-not-exist.yaml") // is not loaded
	const use = `use dist.InitProcessGroup("ccl"), goccl's own backend and not oneCCL`
	for name, text := range map[string]string{
		"nccl":   `unknown backend "nccl" (available: ccl): goccl has no GPU backend; tensors are slices in main memory; ` + use,
		"gloo":   `unknown backend "gloo" (available: ccl): "ccl" replaces it on CPUs; ` + use,
		"mpi":    `unknown backend "mpi" (available: ccl): "ccl" uses MPI between nodes, as transport mpi; ` + use,
		"ucc":    `unknown backend "ucc" (available: ccl): "ccl" replaces it on CPUs; ` + use,
		"oneccl": `unknown backend "oneccl" (available: ccl): it belongs to another library; ` + use,
		"":       `unknown backend "" (available: ccl): the name is required; ` + use,
		"CCL":    `unknown backend "CCL" (available: ccl): ` + use,
	} {
		err := dist.InitProcessGroup(name)
		require.EqualError(t, err, text)
		invalid, ok := err.(*dist.InvalidBackendError)
		require.True(t, ok, "as it is, not wrapped")
		require.Equal(t, []string{"ccl"}, invalid.Available)
		require.False(t, dist.IsInitialized())
	}
}

// Before init and after destroy everything but IsInitialized returns an error. WithGroup
// does not revive a destroyed group.
func TestUninitialised(t *testing.T) {
	check := func(t *testing.T, opts ...dist.CallOption) {
		t.Helper()
		calls := map[string]func() error{
			"get_rank":       func() error { _, err := dist.GetRank(opts...); return err },
			"get_world_size": func() error { _, err := dist.GetWorldSize(opts...); return err },
			"get_backend":    func() error { _, err := dist.GetBackend(opts...); return err },
			"all_reduce":     func() error { return dist.AllReduce([]float32{1}, dist.Sum, opts...) },
			"all_reduce nil": func() error { return dist.AllReduce[float32](nil, dist.Sum, opts...) },
			"all_gather":     func() error { return dist.AllGatherV([]float32{1}, []float32{1}, []int{1}, opts...) },
			"broadcast":      func() error { return dist.Broadcast([]float32{1}, 0, opts...) },
			"barrier":        func() error { return dist.Barrier(opts...) },
			"destroy":        func() error { return dist.DestroyProcessGroup(opts...) },
		}
		if opts == nil {
			calls["default"] = func() error { _, err := dist.Default(); return err }
		}
		for name, call := range calls {
			require.ErrorIs(t, call(), dist.ErrNotInitialized, name)
			why := "default process group has not been initialized"
			if opts != nil {
				why = "the process group that dist.WithGroup names was destroyed"
			}
			require.ErrorContains(t, call(), why, name)
		}
		require.False(t, dist.IsInitialized())
	}
	life := func(context.Context, int) error {
		check(t)
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		group, err := dist.Default()
		if err != nil {
			return err
		}
		if err := dist.DestroyProcessGroup(); err != nil {
			return err
		}
		check(t)
		check(t, dist.WithGroup(group))
		return nil
	}
	require.EqualError(t, reason(t, dist.Barrier()), "dist: default process group has not been initialized: call dist.InitProcessGroup first")
	require.NoError(t, life(t.Context(), 0), "without Spawn")
	require.NoError(t, spawn(t, life, dist.WithRanks(3)))
}

// Outside of Spawn a process is rank 0 of 1.
func TestWithoutSpawn(t *testing.T) {
	require.False(t, dist.IsInitialized())
	require.NoError(t, dist.InitProcessGroup("ccl"))
	require.True(t, dist.IsInitialized())
	rank, err := dist.GetRank()
	require.NoError(t, err)
	require.Equal(t, 0, rank)
	size, err := dist.GetWorldSize()
	require.NoError(t, err)
	require.Equal(t, 1, size)
	name, err := dist.GetBackend()
	require.NoError(t, err)
	require.Equal(t, "ccl", name)
	tensor := []float64{3, 4}
	require.NoError(t, dist.AllReduce(tensor, dist.Avg))
	require.Equal(t, []float64{3, 4}, tensor)
	require.NoError(t, dist.Barrier())
	require.NoError(t, dist.DestroyProcessGroup())
	require.False(t, dist.IsInitialized())
	require.Zero(t, dist.OpenRendezvous())
}

// A second init without a destroy is an error with advice; the group and later inits are not
// affected.
func TestDoubleInit(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if rank == 1 {
			err := dist.InitProcessGroup("ccl")
			assert.ErrorIs(t, err, dist.ErrAlreadyInitialized)
			assert.EqualError(t, err, "dist: default process group has been initialized already on rank 1: call dist.DestroyProcessGroup first")
		}
		if err := dist.Barrier(); err != nil {
			return err
		}
		if err := dist.DestroyProcessGroup(); err != nil {
			return err
		}
		return dist.InitProcessGroup("ccl")
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// Repeated destroy and init work even if the ranks' goroutines are generations apart, and
// leave nothing behind.
func TestDestroyAndInitAgain(t *testing.T) {
	const ranks, times = 3, 200
	before := runtime.NumGoroutine()
	err := spawn(t, func(ctx context.Context, rank int) error {
		for i := range times {
			err := initialised(func(context.Context, int) error {
				tensor := []int64{int64(i)}
				if err := dist.AllReduce(tensor, dist.Sum); err != nil {
					return err
				}
				assert.Equal(t, []int64{int64(ranks * i)}, tensor)
				return nil
			})(ctx, rank)
			if err != nil {
				return err
			}
		}
		return nil
	}, dist.WithRanks(ranks))
	require.NoError(t, err)
	within(t, func() {
		for runtime.NumGoroutine() > before+1 { // the 1 is this goroutine
			runtime.Gosched()
		}
	})
}

// All ranks can replace a group that failed.
func TestInitAgainAfterFailure(t *testing.T) {
	err := spawn(t, func(ctx context.Context, rank int) error {
		for i := range 3 {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			wrong := make([]int32, 5+(rank+i)%2)
			for range 2 { // the group stays failed
				var mismatch *dist.MismatchError
				assert.ErrorAs(t, dist.AllReduce(wrong, dist.Sum), &mismatch)
			}
			if err := dist.DestroyProcessGroup(); err != nil {
				return err
			}
		}
		return initialised(func(context.Context, int) error { return dist.AllReduce(make([]int32, 5), dist.Sum) })(ctx, rank)
	}, dist.WithRanks(3))
	require.NoError(t, err)
}

// One goroutine of a rank at a time may be in InitProcessGroup.
func TestConcurrentInitOfOneRank(t *testing.T) {
	second := make(chan struct{}) // rank 1 waits until rank 0 has called twice
	err := spawn(t, func(ctx context.Context, rank int) error {
		if rank == 1 {
			<-second
			return dist.InitProcessGroup("ccl")
		}
		errs := make(chan error)
		for range 2 {
			dist.Go(func() { errs <- dist.InitProcessGroup("ccl") })
		}
		err := <-errs
		assert.ErrorIs(t, err, dist.ErrConcurrentUse)
		assert.ErrorContains(t, err, "another goroutine of rank 0 is in InitProcessGroup")
		close(second)
		return <-errs
	}, dist.WithRanks(2))
	require.NoError(t, err)
}

// A step that fails on one rank fails InitProcessGroup on all; no rank is initialised,
// and a retry works.
func TestFailureOfOneRankIsOfAll(t *testing.T) {
	texts := golden.Errors(t)
	good := configFile(t, "timeout: 20s")
	steps := map[string]struct {
		backend string
		opts    []dist.InitOption
		text    string // of the rank that fails
	}{
		"backend": {"nccl", nil, `unknown backend "nccl"`},
		"load config": {"ccl", []dist.InitOption{dist.WithConfigFile("missing.yaml")},
			`initialization of "ccl" failed: missing.yaml: cannot read the configuration: no such file or directory`},
		"find algorithm": {"ccl", []dist.InitOption{dist.WithAlgorithm("rign")},
			`initialization of "ccl" failed: ` + good + `: defaults.algorithm (option): there is no entry "rign" in algorithms (did you mean ring?)`},
		"resolve world size": {"ccl", []dist.InitOption{dist.WithConfigFile(configFile(t, "world_size: 4"))},
			"the world size is 4 by "},
		"find transport": {"ccl", []dist.InitOption{dist.WithTransport("shm")},
			`initialization of "ccl" failed: option: defaults.transport: transport "shm" connects processes, and no launcher started this one as one of several ranks: ` +
				`start the program with goccl run -n 3, which sets GOCCL_SHM_NAME, GOCCL_SHM_RANK and GOCCL_SHM_SIZE, or use local, or auto, between goroutines`},
		"options": {"ccl", []dist.InitOption{dist.WithConfig(nil)},
			`initialization of "ccl" failed: dist: init_process_group: the configuration of dist.WithConfig is nil`},
	}
	for name, step := range steps {
		for _, culprit := range []int{0, 2} {
			t.Run(name, func(t *testing.T) {
				err := spawn(t, func(ctx context.Context, rank int) error {
					var err error
					if rank == culprit {
						err = dist.InitProcessGroup(step.backend, step.opts...)
						texts.Add(name, err)
						assert.ErrorContains(t, err, step.text)
					} else {
						err = dist.InitProcessGroup("ccl")
						var failed *dist.InitializationFailedError
						assert.ErrorAs(t, err, &failed)
						texts.Add(name+", another rank", err)
						var aborted *dist.AbortedError
						if assert.ErrorAs(t, err, &aborted) {
							assert.Equal(t, culprit, aborted.By)
						}
						assert.ErrorContains(t, err, `initialization of "ccl" failed: aborted by rank `)
					}
					assert.False(t, dist.IsInitialized())
					assert.ErrorIs(t, dist.Barrier(), dist.ErrNotInitialized)

					return initialised(func(context.Context, int) error { return dist.Barrier() })(ctx, rank)
				}, dist.WithRanks(3), dist.WithSpawnConfigFile(good))
				require.NoError(t, err)
			})
		}
	}
}

// Every rank gets the error of its own mistake.
func TestFailureOfAllRanks(t *testing.T) {
	err := spawn(t, func(ctx context.Context, rank int) error {
		err := dist.InitProcessGroup("ccl", dist.WithConfigFile("missing.yaml"))
		assert.EqualError(t, err, `initialization of "ccl" failed: missing.yaml: cannot read the configuration: no such file or directory`)
		var mistake *dist.ConfigError
		assert.ErrorAs(t, err, &mistake)
		assert.ErrorIs(t, err, fs.ErrNotExist)
		return nil
	}, dist.WithRanks(3))
	require.NoError(t, err)
}

// The error of a setting that differs names it and the values of the ranks.
func TestRanksDisagreeOnConfig(t *testing.T) {
	err := spawn(t, func(ctx context.Context, rank int) error {
		timeout := 20 * time.Second
		if rank == 1 {
			timeout = 21 * time.Second
		}
		err := dist.InitProcessGroup("ccl", dist.WithTimeout(timeout))
		var failed *dist.InitializationFailedError
		assert.ErrorAs(t, err, &failed)
		var mismatch *dist.MismatchError
		if assert.ErrorAs(t, err, &mismatch) {
			assert.Equal(t, "defaults.timeout", mismatch.Field)
		}
		assert.ErrorContains(t, err, "ranks disagree on defaults.timeout: 20s on ranks 0, 2 (option); 21s on rank 1 (option)")
		assert.False(t, dist.IsInitialized())
		return initialised(func(context.Context, int) error { return nil })(ctx, rank)
	}, dist.WithRanks(3))
	require.NoError(t, err)
}

// A world size of ranks that were never started fails without waiting; the error names
// both sizes, their sources and the remedy.
func TestWorldSizeUnlikeHosted(t *testing.T) {
	file := configFile(t, "world_size: 3")
	t.Run("Spawn", func(t *testing.T) {
		err := spawn(t, initialised(func(context.Context, int) error { return nil }, dist.WithConfigFile(file)), dist.WithRanks(2))
		var missing *dist.MissingConfigurationError
		require.ErrorAs(t, err, &missing)
		require.ErrorContains(t, err, `initialization of "ccl" failed: the world size is 3 by `+file+`:2 (defaults.world_size), `+
			`but dist.Spawn hosts 2 ranks: dist.WithRanks(2); start 3 ranks, or set defaults.world_size to 2`)
	})
	t.Run("without Spawn", func(t *testing.T) {
		err := dist.InitProcessGroup("ccl", dist.WithConfigFile(file))
		var missing *dist.MissingConfigurationError
		require.ErrorAs(t, err, &missing)
		require.ErrorContains(t, err, `the world size is 3 by `+file+`:2 (defaults.world_size), `+
			`but this process is one rank (call InitProcessGroup inside dist.Spawn, or start the program with goccl run -n 3); start 3 ranks, or set defaults.world_size to 1`)
		require.False(t, dist.IsInitialized())
	})
}

// The order in which configurations are looked up, seen in the resulting timeout.
func TestWhichConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg, err := config.Load(configFile(t, "timeout: 11s"))
	require.NoError(t, err)
	file := configFile(t, "timeout: 12s")
	ofSpawn := configFile(t, "timeout: 13s")
	timeout := func(spawnOpts []dist.SpawnOption, opts ...dist.InitOption) (d time.Duration) {
		t.Helper()
		err := spawn(t, initialised(func(context.Context, int) error {
			group, err := dist.Default()
			d = group.Communicator().Selector().Timeout()
			return err
		}, opts...), append(spawnOpts, dist.WithRanks(1))...)
		require.NoError(t, err)
		return d
	}
	named := []dist.SpawnOption{dist.WithSpawnConfigFile(ofSpawn)}

	require.Equal(t, time.Minute, timeout(nil), "built in")
	require.NoError(t, os.Rename(configFile(t, "timeout: 15s"), "ccl.yaml"))
	require.Equal(t, 15*time.Second, timeout(nil), "./ccl.yaml")
	t.Setenv("GOCCL_CONFIG", configFile(t, "timeout: 14s"))
	require.Equal(t, 14*time.Second, timeout(nil), "GOCCL_CONFIG")
	require.Equal(t, 13*time.Second, timeout(named), "WithSpawnConfigFile")
	require.Equal(t, 12*time.Second, timeout(named, dist.WithConfigFile(file)), "WithConfigFile")
	t.Setenv("GOCCL_TIMEOUT", "16s") // overrides all files
	require.Equal(t, 16*time.Second, timeout(nil), "GOCCL_TIMEOUT")
	require.Equal(t, 16*time.Second, timeout(named), "GOCCL_TIMEOUT")
	require.Equal(t, 16*time.Second, timeout(named, dist.WithConfigFile(file)), "GOCCL_TIMEOUT")
	require.Equal(t, 16*time.Second, timeout(named, dist.WithConfig(cfg)), "GOCCL_TIMEOUT")
	require.Equal(t, 17*time.Second, timeout(named, dist.WithTimeout(17*time.Second)), "WithTimeout")
	t.Setenv("GOCCL_TIMEOUT", "")
	require.Equal(t, 11*time.Second, timeout(named, dist.WithConfig(cfg), dist.WithConfigFile(file)), "WithConfig")
	require.Equal(t, 10*time.Second, timeout(named, dist.WithConfig(cfg), dist.WithTimeout(10*time.Second)), "WithTimeout")
	require.Equal(t, time.Duration(0), timeout(named, dist.WithTimeout(-1)), "no timeout")
}

// The error of a missing file names what referred to it.
func TestNamedConfigIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	t.Setenv("GOCCL_CONFIG", path)
	const reason = ": cannot read the configuration: no such file or directory"

	err := dist.InitProcessGroup("ccl")
	require.EqualError(t, err, `initialization of "ccl" failed: `+path+reason+`; GOCCL_CONFIG names this file: correct or unset it`)
	require.ErrorIs(t, err, fs.ErrNotExist)
	err = dist.Spawn(func(context.Context, int) error { return nil })
	require.EqualError(t, err, path+reason+"; GOCCL_CONFIG names this file: correct or unset it")
	err = dist.Spawn(func(context.Context, int) error { return nil }, dist.WithSpawnConfigFile("other.yaml"), dist.WithRanks(2))
	require.EqualError(t, err, "other.yaml"+reason)
}

func TestAlgorithmAndTransportByOption(t *testing.T) {
	err := spawn(t, initialised(func(context.Context, int) error {
		group, err := dist.Default()
		assert.Equal(t, "ring", group.Communicator().Selector().(*config.Settings).Algorithm())
		assert.Equal(t, "local", group.Communicator().Transport())
		return err
	}, dist.WithAlgorithm("ring"), dist.WithTransport("local")), dist.WithRanks(2))
	require.NoError(t, err)
}

// Options of torch's programs are accepted, ignored, and logged.
func TestIgnoredOptions(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	require.NoError(t, dist.InitProcessGroup("ccl", dist.WithWorldSize(4), dist.WithRank(3)), "silent without a logger")
	require.NoError(t, dist.DestroyProcessGroup())
	require.NoError(t, dist.InitProcessGroup("ccl", dist.WithWorldSize(4), dist.WithRank(3), dist.WithLogger(logger)))
	defer dist.DestroyProcessGroup()
	rank, err := dist.GetRank()
	require.NoError(t, err)
	require.Equal(t, 0, rank)
	require.Contains(t, log.String(), "option=WithWorldSize(4) rank=0 ranks=1")
	require.Contains(t, log.String(), "option=WithRank(3) rank=0 ranks=1")
}

// The error names a rank that does not call, and the wait ends as soon as it is known
// that the rank will not.
func TestRankNeverInitialises(t *testing.T) {
	const missing = 2
	for name, c := range map[string]struct {
		absent func(others *sync.WaitGroup) error // how rank `missing` stays away
		text   string                             // of the others
		as     any                                // wrapped in it
		opts   []dist.InitOption
	}{
		"its worker returned": {
			absent: func(*sync.WaitGroup) error { return nil },
			text: `initialization of "ccl" failed: a worker returned without a call of dist.InitProcessGroup to match: ` +
				`peer lost: rank 2 has left the group`,
			as: new(*dist.PeerLostError),
		},
		"its worker failed": {
			absent: func(*sync.WaitGroup) error { return errors.New("disk full") },
			text:   `initialization of "ccl" failed: aborted by rank 2: disk full`,
			as:     new(*dist.AbortedError),
		},
		"its worker panicked": {
			absent: func(*sync.WaitGroup) error { panic("no") },
			text:   `initialization of "ccl" failed: aborted by rank 2: the worker panicked: no`,
			as:     new(*dist.PanicError),
		},
		"it is blocked": {
			absent: func(others *sync.WaitGroup) error { others.Wait(); return nil },
			text:   `: waiting for all 4 ranks to call dist.InitProcessGroup: timed out after 50ms`,
			as:     new(*dist.TimeoutError),
			opts:   []dist.InitOption{dist.WithTimeout(50 * time.Millisecond)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var others sync.WaitGroup
			others.Add(3)
			var errs perRank[error]
			spawn(t, func(ctx context.Context, rank int) error {
				if rank == missing {
					return c.absent(&others)
				}
				defer others.Done()
				errs.put(rank, dist.InitProcessGroup("ccl", c.opts...))
				return nil
			}, dist.WithRanks(4))
			require.Len(t, errs.values, 3)
			for rank, err := range errs.values {
				require.ErrorContains(t, err, c.text, "rank %d", rank)
				require.ErrorAs(t, err, c.as)
			}
		})
	}
}

// The timeout lists the missing ranks, both for ranks that waited and for those that call
// too late; then all can retry.
func TestInitTimeoutNamesTheMissing(t *testing.T) {
	var waited sync.WaitGroup
	waited.Add(2)
	err := spawn(t, func(ctx context.Context, rank int) error {
		if rank%2 == 1 {
			waited.Wait()
		}
		err := dist.InitProcessGroup("ccl", dist.WithTimeout(30*time.Millisecond))
		if rank%2 == 0 {
			waited.Done()
		}
		var timeout *dist.TimeoutError
		if assert.ErrorAs(t, err, &timeout, "rank %d", rank) {
			assert.Equal(t, []int{1, 3}, timeout.Missing)
			assert.Equal(t, 30*time.Millisecond, timeout.After)
		}
		return initialised(func(context.Context, int) error { return dist.Barrier() })(ctx, rank)
	}, dist.WithRanks(4))
	require.NoError(t, err)
}

// Spawn's context ends the wait for other ranks.
func TestInitIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var errs perRank[error]
	var over sync.WaitGroup
	over.Add(2)
	err := spawn(t, func(_ context.Context, rank int) error {
		if rank == 2 {
			cancel()
			over.Wait()
			return nil
		}
		defer over.Done()
		errs.put(rank, dist.InitProcessGroup("ccl"))
		return nil
	}, dist.WithRanks(3), dist.WithSpawnContext(ctx))
	require.NoError(t, err)
	for rank := range 2 {
		require.ErrorIs(t, errs.values[rank], context.Canceled)
		require.ErrorContains(t, errs.values[rank], `initialization of "ccl" failed: `)
	}
}

// The n-th call of a rank meets the n-th calls of the others, also if they make it later:
// a rank that fails three times fails three calls of all.
func TestAttemptsPairUp(t *testing.T) {
	const bad = 3
	err := spawn(t, func(ctx context.Context, rank int) error {
		for range bad {
			opts := []dist.InitOption{}
			if rank == 1 {
				opts = append(opts, dist.WithConfigFile("missing.yaml"))
			}
			err := dist.InitProcessGroup("ccl", opts...)
			assert.ErrorIs(t, err, fs.ErrNotExist, "rank %d", rank)
		}
		return initialised(func(context.Context, int) error { return dist.Barrier() })(ctx, rank)
	}, dist.WithRanks(3))
	require.NoError(t, err)
}

// A worker that ends while a goroutine of its rank is in InitProcessGroup fails the
// rendezvous.
func TestWorkerEndsDuringInit(t *testing.T) {
	broken := errors.New("out of paper")
	entered := make(chan struct{}) // a goroutine of rank 0 is in InitProcessGroup
	errs := make(chan error)
	err := spawn(t, func(ctx context.Context, rank int) error {
		if rank == 1 {
			<-entered
			return nil
		}
		for range 2 {
			dist.Go(func() { errs <- dist.InitProcessGroup("ccl") })
		}
		assert.ErrorIs(t, <-errs, dist.ErrConcurrentUse, "for one of them is inside")
		close(entered)
		return broken
	}, dist.WithRanks(2))
	require.ErrorIs(t, err, broken)
	within(t, func() { require.ErrorContains(t, <-errs, `initialization of "ccl" failed: `) })
}

// The logger gets what Findings reports about the rules, once.
func TestFindingsAreLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	cfg, err := config.Parse("mine.yaml", []byte("version: 1\nalgorithms: {ring: {module: ring}}\nrules: [{collective: all_reduce, algorithm: ring}]\n"))
	require.NoError(t, err)
	err = spawn(t, initialised(func(context.Context, int) error { return nil }, dist.WithConfig(cfg), dist.WithLogger(logger)), dist.WithRanks(3))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(log.String(), "finding="), log.String())
	require.Contains(t, log.String(), `at=mine.yaml:3 finding="no rule matches reduce (float32, sum, 0 bytes, 1 ranks), for example: such calls fail;`)
}

// A misspelt variable would silently run another experiment: it is an error on all ranks.
func TestUnknownVariable(t *testing.T) {
	t.Setenv("GOCCL_ALGORTHM", "ring")
	const want = "environment: GOCCL_ALGORTHM: goccl has no such variable (did you mean GOCCL_ALGORITHM?); it has GOCCL_"
	err := spawn(t, func(context.Context, int) error {
		err := dist.InitProcessGroup("ccl")
		assert.ErrorContains(t, err, want)
		assert.ErrorAs(t, err, new(*dist.ConfigError))
		return nil
	}, dist.WithRanks(2))
	require.NoError(t, err)
}
