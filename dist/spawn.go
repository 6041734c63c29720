package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/launchenv"
)

// SpawnOption is an option of Spawn. Later options override earlier ones.
type SpawnOption struct{ set func(*spawnOptions) }

type spawnOptions struct {
	ranks  int
	ranked bool
	file   string
	filed  bool
	ctx    context.Context
}

// WithRanks makes Spawn host n ranks, from 1 to 65536. In a process that a launcher
// started, n must be the launcher's number of ranks.
func WithRanks(n int) SpawnOption {
	return SpawnOption{func(o *spawnOptions) { o.ranks, o.ranked = n, true }}
}

// WithSpawnConfigFile loads the configuration from the file path, in the format of
// ccl.yaml. It determines the number of ranks, and configures InitProcessGroup unless
// that has options of its own.
func WithSpawnConfigFile(path string) SpawnOption {
	return SpawnOption{func(o *spawnOptions) { o.file, o.filed = path, true }}
}

// WithSpawnContext sets the parent of the context that workers get, and the context of
// calls that have none of their own. Without it, or if ctx is nil, it is
// context.Background.
func WithSpawnContext(ctx context.Context) SpawnOption {
	return SpawnOption{func(o *spawnOptions) { o.ctx = cmp.Or(ctx, o.ctx) }}
}

// Spawn runs worker once for every rank, each in its own goroutine, and waits until all have ended.
//
// The number of ranks is given by WithRanks, else by the world size in the configuration, else it
// is one for each usable core.
//
// A worker's ctx is derived from the context of WithSpawnContext.
//
// After a worker returns nil, Spawn waits for the asynchronous calls and Isends that it started,
// until they end, their timeouts, or ctx. Their errors are that rank's; other ranks do not fail
// by them. *UnfinishedError counts receives that matched no message.
//
// # Failures
//
// A worker fails by returning an error, by a panic (*PanicError) or by runtime.Goexit (ErrGoexit).
//
// Then the worker's groups fail, and the ctx of all workers is cancelled, with a *RankError as its
// cause, so that long computations can stop. Calls that wait for the failed rank end without ctx:
// they return *AbortedError, not ctx's error.
//
// A worker that is stuck in its own code makes its peers' calls fail by *TimeoutError. Once all
// others have ended, Spawn waits for it for the same time again and then returns without it: its
// *StuckError has the stack, and its goroutine remains.
//
// Spawn waits without limit for a worker that waits, on a channel or lock of the program, for one
// that has failed: such a worker must select on ctx.
//
// Spawn returns a *RankError for each worker that failed, joined so that errors.Is and errors.As
// find them all: first the causes, in the order of time, then those that failed because of
// others. Its text shows errors that differ only in the rank once. It is nil if all workers
// returned nil.
//
// Before any worker starts, Spawn fails with *InvalidArgumentError or *ConfigError.
//
// # Ranks as processes
//
// In a process that a launcher started as one of several ranks (see IsLaunched), Spawn runs worker
// once, with the launcher's rank; the other ranks run in processes of their own.
//
// The number of ranks is the launcher's, WithRanks must be equal to it, and the process is in one
// job at a time. Spawn returns this rank's error alone; to end the launcher's job, the program
// must exit with a status other than 0.
//
// Before it returns, Spawn ends what the transport has started for the life of the process, such as
// MPI: it waits for the other ranks to do the same, or 0.3 s after a failure. A later Spawn on that
// transport fails.
//
// Besides, it fails before the worker starts with
//
//   - *MissingConfigurationError: variables are missing, or WithRanks differs from the launcher's
//     number
//   - *BackendNotAvailableError: the ranks are on several nodes, and no transport of the program is
//     for them
//   - *InitializationFailedError: variables contradict each other
func Spawn(worker func(ctx context.Context, rank int) error, opts ...SpawnOption) error {
	if worker == nil {
		return &InvalidArgumentError{Operation: "dist.spawn", Message: "the worker is nil"}
	}
	l, err := launchOrRefuse()
	if err != nil {
		return err
	}

	o := spawnOptions{ctx: context.Background()}
	for _, opt := range opts {
		if opt.set != nil {
			opt.set(&o)
		}
	}
	ranks, from, cfg, err := o.resolve(l)
	if err != nil {
		j := &job{launched: l, size: max(o.ranks, 1)}
		if _, invalid := j.requested(""); invalid != nil {
			err = invalid // InitProcessGroup would return it before it loads the configuration
		}
		reportInit(err)
		return err
	}
	j := newJob(o.ctx, l, ranks, from, cfg)
	if err := j.register(); err != nil {
		return err
	}
	defer j.unregister()

	ctx, cancel := context.WithCancelCause(o.ctx)
	defer cancel(nil)
	j.running.Store(int64(len(j.ranks)))
	for _, r := range j.ranks {
		interleave.Go(func() { r.run(ctx, cancel, worker) })
	}
	interleave.Receive(j.idle)
	err = j.failure(context.Cause(ctx))
	if leaveErr := j.leaveTransport(err != nil); err == nil {
		err = leaveErr
	}
	return err
}

// resolve returns the number of ranks, a description of where it comes from, and the
// configuration if it was loaded for that or for WithSpawnConfigFile.
func (o *spawnOptions) resolve(l *launchenv.Job) (ranks int, from string, cfg *config.Config, err error) {
	switch {
	case o.filed:
		cfg, err = loadConfig(o.file)
	case !o.ranked && l == nil:
		cfg, err = config.Find()
	}

	if err != nil {
		return 0, "", nil, err
	}
	if o.ranked && (o.ranks < 1 || o.ranks > config.MaxRanks) {
		return 0, "", nil, &InvalidArgumentError{
			Operation: "dist.spawn",
			Message:   fmt.Sprintf("dist.WithRanks(%d): from 1 to %d ranks are possible", o.ranks, config.MaxRanks),
		}
	}

	if l != nil {
		if o.ranked && o.ranks != l.Size {
			return 0, "", nil, &MissingConfigurationError{
				Missing: []string{"dist.WithRanks"},
				Message: fmt.Sprintf("dist.WithRanks(%d) asks for %d ranks, but %v; start %d processes, or omit dist.WithRanks",
					o.ranks, o.ranks, l, o.ranks),
			}
		}
		return l.Size, l.String(), cfg, nil
	}

	if o.ranked {
		ranks, from = o.ranks, fmt.Sprintf("dist.WithRanks(%d)", o.ranks)
	} else if n, origin, ok := cfg.WorldSize(""); ok {
		ranks, from = n, origin
	} else {
		ranks, from = runtime.GOMAXPROCS(0), "one for each usable core"
	}
	return ranks, fmt.Sprintf("dist.Spawn hosts %d ranks: %s", ranks, from), cfg, nil
}

// run is the goroutine of the rank's worker.
func (r *rank) run(ctx context.Context, cancel context.CancelCauseFunc, worker func(context.Context, int) error) {
	ctx = pprof.WithLabels(ctx, pprof.Labels("ccl.rank", strconv.Itoa(r.number)))
	pprof.SetGoroutineLabels(ctx)
	r.bind()
	defer r.finished()
	defer bound.Delete()

	err := ErrGoexit // unless the worker returns or panics
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Rank: r.number, Value: v, Stack: debug.Stack()}
		}
		if err == nil {
			r.drained = cmp.Or(r.drain(ctx), r.group.Load().writeFlightAtEnd())
		}
		r.reportWorker(cmp.Or(err, r.drained)) // before the peers learn of it
		r.writeFlight(err)
		if first, _ := r.end(err); first != nil && first.Rank == r.number {
			interleave.Step()
			cancel(first) // after the groups have failed: their failure is what calls with ctx return
		}
	}()
	err = worker(ctx, r.number)
}

// failure joins the errors of the workers, which have all ended: first the causes, in the order of
// time, then their consequences. cancelled is the cause with which the workers' context was
// cancelled, or nil.
func (j *job) failure(cancelled error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	ranks := make([]failure.Rank, j.size)
	errs := make(rankErrors, j.size) // by rank
	for i, r := range j.ended {
		err := r.outcome()
		if err == nil {
			continue
		}
		kind, named := causeOf(r.number, err)
		hasHeeded := errors.Is(err, context.Canceled) || cancelled != nil && errors.Is(err, cancelled)
		if hasHeeded && !kind.IsConsequence() {
			kind = failure.Canceled
		}
		report := &failure.Report{Kind: kind, Ranks: named, Time: time.Unix(0, int64(i))} // the order matters
		ranks[r.number] = failure.Rank{HasFailed: true, Report: report}
		errs[r.number] = &RankError{r.number, err}
	}

	var failed rankErrors
	for _, rank := range failure.Blame(ranks).Order {
		failed = append(failed, errs[rank])
	}
	if failed == nil {
		return nil
	}
	return failed
}
