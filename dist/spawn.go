package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/launchenv"
)

// SpawnOption is an option of Spawn. Of two of a kind the later holds.
type SpawnOption struct {
	ranks  int
	ranked bool
	file   string
	filed  bool
	ctx    context.Context
}

// WithRanks says how many ranks Spawn hosts, from 1 to 65536. In a launched process it
// has to be the number of ranks that the launcher started.
func WithRanks(n int) SpawnOption { return SpawnOption{ranks: n, ranked: true} }

// WithSpawnConfigFile takes the configuration from the file path, in the format of
// ccl.yaml: the number of ranks, and what InitProcessGroup does if it is given
// no other.
func WithSpawnConfigFile(path string) SpawnOption { return SpawnOption{file: path, filed: true} }

// WithSpawnContext is the parent of the context that workers get, and ends the
// calls that bring no context of their own. Without it, or if ctx is nil, it is
// context.Background.
func WithSpawnContext(ctx context.Context) SpawnOption { return SpawnOption{ctx: ctx} }

func mergeSpawn(opts []SpawnOption) (o SpawnOption) {
	o.ctx = context.Background()
	for _, add := range opts {
		if add.ranked {
			o.ranks, o.ranked = add.ranks, true
		}
		if add.filed {
			o.file, o.filed = add.file, true
		}
		if add.ctx != nil {
			o.ctx = add.ctx
		}
	}
	return o
}

// Spawn runs worker once for every rank, each in a goroutine of its own, and
// waits until all have ended, whatever happens, but for workers that are stuck (see
// *StuckError). The number of ranks is that of
// Ranks, else the world size that the configuration asks for, else one for each
// usable core; but see below for processes that were launched.
//
// A worker that returns nil first completes what it has begun by Async functions and by
// Isend and not waited for: Spawn waits for that as long as its calls would, until they
// have ended, their timeouts, or ctx. What failed then, and receives without a message,
// which *UnfinishedError counts, are the error of that rank; no other rank fails by it.
//
// A worker's ctx is derived from that of WithSpawnContext. It is cancelled, with a
// *RankError as its cause, when another worker fails, so that long computations
// can stop; calls waiting for the failed rank end by themselves.
//
// A worker fails by returning an error, by a panic (*PanicError) or by
// runtime.Goexit (ErrGoexit). One that is stuck in code of its own while its peers wait
// makes their calls fail by *TimeoutError; when all others have ended, Spawn waits for it as
// long again, and then returns without it: its *StuckError has the stack, its goroutine is
// left behind. A worker that waits by means of the program's own, a channel or a lock, for one
// that has failed has to heed ctx: Spawn waits for it as long as it does. Spawn returns a *RankError for each that failed,
// joined so that errors.Is and errors.As find them all: first those that failed by themselves, in the order in
// which they did, and then those that only failed because of others. nil says
// that all workers returned nil.
//
// In a process that a launcher started as one of several ranks (goccl run,
// torchrun, mpirun, mpiexec, srun; see IsLaunched) Spawn hosts that one rank: it runs
// worker once, with the launcher's rank, and the workers of the others run in
// processes of their own. There the number of ranks is the launcher's, Ranks may only repeat
// it, and the process is in one job at a time. What Spawn returns is this rank's
// error alone; a program that is to end its launcher's job by it exits with a
// status other than 0.
//
// Before any worker starts, Spawn fails with *InvalidArgumentError,
// *ConfigError, or, where a launcher's variables are there,
// *MissingConfigurationError (some are not, or Ranks is unlike the launcher's),
// *BackendNotAvailableError (ranks on several nodes) or
// *InitializationFailedError (they contradict each other).
func Spawn(worker func(ctx context.Context, rank int) error, opts ...SpawnOption) error {
	if worker == nil {
		return &InvalidArgumentError{Operation: "spawn", Message: "the worker is nil"}
	}
	l, err := launch()
	if err != nil {
		return err
	}
	o := mergeSpawn(opts)
	ranks, from, config, err := o.resolve(l)
	if err != nil {
		if l != nil {
			report(l.Rank, launchenv.FailedInit, err)
		}
		return err
	}
	j := newJob(o.ctx, l, ranks, from, config)
	if err := j.register(); err != nil {
		return err
	}
	defer j.unregister()

	ctx, cancel := context.WithCancelCause(o.ctx)
	defer cancel(nil)
	j.running.Store(int64(len(j.ranks)))
	for _, r := range j.ranks {
		go r.run(ctx, cancel, worker)
	}
	<-j.over
	return j.failure(context.Cause(ctx))
}

// resolve says how many ranks there are, in words who says so, and which
// configuration was loaded, to know it or as the options say.
func (o *SpawnOption) resolve(l *launchenv.Job) (ranks int, from string, config *ccl.Config, err error) {
	switch {
	case o.filed:
		config, err = loadConfig(o.file)
	case !o.ranked && l == nil:
		config, err = ccl.FindConfig()
	}
	if err != nil {
		return 0, "", nil, err
	}
	if o.ranked && (o.ranks < 1 || o.ranks > ccl.MaxRanks) {
		return 0, "", nil, &InvalidArgumentError{
			Operation: "spawn",
			Message:   fmt.Sprintf("dist.WithRanks(%d): from 1 to %d ranks are possible", o.ranks, ccl.MaxRanks),
		}
	}
	if l != nil {
		if o.ranked && o.ranks != l.Size {
			return 0, "", nil, &MissingConfigurationError{
				Missing: []string{"dist.Ranks"},
				Message: fmt.Sprintf("dist.WithRanks(%d) asks for %d ranks, but %v; start %d processes, or leave it to the launcher by dist.Spawn without dist.Ranks",
					o.ranks, o.ranks, l, o.ranks),
			}
		}
		return l.Size, l.String(), config, nil
	}
	if o.ranked {
		ranks, from = o.ranks, fmt.Sprintf("dist.WithRanks(%d)", o.ranks)
	} else if n, origin, ok := config.WorldSize(""); ok {
		ranks, from = n, origin
	} else {
		ranks, from = runtime.GOMAXPROCS(0), "one for each usable core"
	}
	return ranks, fmt.Sprintf("dist.Spawn hosts %d ranks: %s", ranks, from), config, nil
}

// run is the life of the rank's worker, from its goroutine's first step to its
// last.
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
			r.left = r.drain(ctx)
		}
		r.reportWorker(cmp.Or(err, r.left)) // before the peers hear of it
		if first := r.end(err); err != nil {
			cancel(first)
		}
	}()
	err = worker(ctx, r.number)
}

// failure joins the errors of workers that have all ended: first the causes, in
// the order of time, then what followed from them. cancelled is the cause by
// which the workers' context ended, nil if it did not.
func (j *job) failure(cancelled error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	blamed := map[int]bool{} // ranks that made others fail
	stuck := map[int]bool{}
	for _, r := range j.ended {
		_, stuck[r.number] = r.err.(*StuckError) //nolint:errorlint // its own
		if failed, ok := errors.AsType[*CollectiveFailedError](r.outcome()); ok && failed.Group != "" {
			continue // its ranks are those of another group
		}
		if aborted, ok := errors.AsType[*AbortedError](r.outcome()); ok {
			blamed[aborted.By] = true
		}
		for _, rank := range said(r.outcome(), "refused") {
			blamed[rank] = true
		}
	}
	var causes, rest rankErrors
	for _, r := range j.ended {
		failed := r.outcome()
		if failed == nil {
			continue
		}
		heeded := errors.Is(failed, context.Canceled) || cancelled != nil && errors.Is(failed, cancelled)
		err := &RankError{r.number, failed}
		how, ranks := because(r.number, failed)
		waited := how == launchenv.BecauseTimeout && slices.ContainsFunc(ranks, func(other int) bool { return stuck[other] })
		if consequence(r.number, failed) || waited || heeded && !blamed[r.number] {
			rest = append(rest, err)
		} else {
			causes = append(causes, err)
		}
	}
	if failed := slices.Concat(causes, rest); len(failed) > 0 {
		return failed
	}
	return nil
}
