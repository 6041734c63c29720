//go:build interleave

package seeds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/stress"
)

// spawnConfig keeps InitProcessGroup from what the machine and its environment say.
var spawnConfig = func() *config.Config {
	c, err := config.Parse("seeds", []byte("version: 1\nalgorithms: {direct: {module: direct}, ring: {module: ring}}\nrules: [{algorithm: direct}]\n"))
	if err != nil {
		panic(err)
	}
	return c
}()

// spawnTimeout bounds waits for ranks in jobs of package dist.
const spawnTimeout = 10 * time.Second

// errEnough is the error of workers that fail.
var errEnough = errors.New("this rank has had enough")

// runSpawn runs a job of dist.Spawn: random calls with departures, or calls in turn and one rank
// that ends in one of many ways. In some a second job runs in the same process.
func runSpawn(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	random := rand.New(rand.NewPCG(seed, 30))
	interleave.SetProcessors([]int{1, 8}[random.IntN(2)])
	if random.IntN(3) == 0 {
		return runDepartingWorkers(t, seed, random, o)
	}

	j := newWorkers(random)
	if o.IsLate = j.isLate; !j.isLate && !j.waits() {
		o.Patience = patience
	}
	var err error
	r := interleave.Run(t, o, func() {
		var all interleave.WaitGroup
		var beside error
		if j.isBeside && !j.isLate {
			all.Go(func() { beside = runBeside() })
		}
		j.spawn()
		all.Wait()
		err = cmp.Or(beside, j.check())
	})
	if err != nil {
		err = fmt.Errorf("%v: %w", j, err)
	}
	return r, err
}

// runBeside is a whole job without a fault.
func runBeside() error {
	return dist.Spawn(func(_ context.Context, rank int) error {
		interleave.SetLabel(fmt.Sprint("rank ", rank, " of the other job"))
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(spawnConfig), dist.WithTimeout(time.Hour)); err != nil {
			return err
		}
		for i := range 3 {
			x := []int{rank + i}
			if err := dist.AllReduce(x, dist.Sum); err != nil {
				return err
			}
			if x[0] != 1+2*i {
				return fmt.Errorf("the other job: the sum is %d, want %d", x[0], 1+2*i)
			}
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(2))
}

// runDepartingWorkers runs random calls and messages in which workers end and groups are destroyed.
func runDepartingWorkers(t *testing.T, seed uint64, random *rand.Rand, o interleave.Options) (interleave.Result, error) {
	ranks := 2 + random.IntN(3)
	ways := [][]stress.Way{
		{stress.Destroy, stress.Fail},
		{stress.Destroy, stress.Return},
		{stress.Destroy, stress.Return, stress.Fail},
	}[random.IntN(3)]
	o.Patience = patience
	p := stress.NewDepartures(seed, stress.Options{Ranks: ranks, Events: 10, Longest: 40, Algorithms: []string{"direct", "ring"}}, ways...)
	accounts := make([]*stress.Account, ranks)
	isBeside := random.IntN(4) == 0

	var err, beside error
	r := interleave.Run(t, o, func() {
		var all interleave.WaitGroup
		if isBeside {
			all.Go(func() { beside = runBeside() })
		}
		err = dist.Spawn(func(_ context.Context, rank int) error {
			interleave.SetLabel(fmt.Sprint("rank ", rank))
			a, err := depart(p)
			accounts[rank] = a
			if err == nil && a.Way == stress.Fail {
				err = errEnough
			}
			return err
		}, dist.WithRanks(ranks))
		all.Wait()
		for _, a := range accounts {
			if a != nil {
				a.Settle(time.Minute)
			}
		}
	})
	if r.Finding != nil {
		return r, nil
	}
	return r, errors.Join(beside, checkDeparted(p, accounts, err))
}

// depart does the part of one worker.
func depart(p *stress.Departures) (*stress.Account, error) {
	if err := dist.InitProcessGroup("ccl", dist.WithConfig(spawnConfig), dist.WithTimeout(time.Hour)); err != nil {
		return nil, err
	}
	all, err := dist.Default()
	if err != nil {
		return nil, err
	}
	return p.Run(context.Background(), all.Communicator(), stress.Exits{
		NewGroup: func(ranks []int) (*ccl.Communicator, func() error, error) {
			g, err := dist.NewGroup(ranks)
			if g == nil {
				return nil, nil, err
			}
			return g.Communicator(), func() error { return dist.DestroyProcessGroup(dist.WithGroup(g)) }, err
		},
		Destroy: func() error { return dist.DestroyProcessGroup(dist.WithGroup(all)) },
	})
}

// checkDeparted checks the accounts of workers, and what Spawn has returned.
func checkDeparted(p *stress.Departures, accounts []*stress.Account, err error) error {
	fails, drains := false, false
	for rank, a := range accounts {
		if a == nil {
			return fmt.Errorf("rank %d has no account: %w", rank, err)
		}
		fails = fails || a.Way == stress.Fail
		drains = drains || a.Way == stress.Return
	}

	_, isLost := errors.AsType[*dist.PeerLostError](err)
	_, isAborted := errors.AsType[*dist.AbortedError](err)
	_, isUnfinished := errors.AsType[*ccl.UnfinishedError](err)
	switch {
	case err == nil && !fails, fails && errors.Is(err, errEnough):
	case err != nil && drains && (isLost || isAborted || isUnfinished):
	default:
		return fmt.Errorf("Spawn returns %v", err)
	}
	return p.Check(accounts)
}

// end is how the worker of a rank ends.
type end string

const (
	endsNormally  end = "ends as all others"
	endsByError   end = "returns an error"
	endsByPanic   end = "panics"
	endsByGoexit  end = "calls Goexit"
	endsEarly     end = "returns nil early"
	endsDestroyed end = "destroys its groups early"
	endsAbsent    end = "does not call InitProcessGroup, and returns nil"
	failsAbsent   end = "does not call InitProcessGroup, and returns an error"
	waitsAbsent   end = "does not call InitProcessGroup, and waits"
	endsCanceled  end = "cancels the context of Spawn"
	endsLate      end = "is late for longer than the timeout"
	endsStuck     end = "is stuck"
)

var ends = []end{
	endsNormally, endsByError, endsByPanic, endsByGoexit, endsEarly, endsDestroyed, endsAbsent, failsAbsent, waitsAbsent,
	endsCanceled, endsLate, endsStuck,
}

// workers are a job whose ranks make the same calls, and whose rank by ends in a way of its own.
type workers struct {
	ranks    int
	by       int
	end      end
	calls    []int // what the calls are, in order; the last is a call of all ranks
	after    int   // rank by ends after so many of them
	members  []int // of the group in which some calls are
	isBeside bool  // a second job runs in the process
	isLate   bool  // timeouts fall due at any time

	err    error   // of Spawn
	errs   []error // of the workers
	made   []int   // by rank: calls that succeeded
	stuck  interleave.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

// Calls of workers.
const (
	callSum = iota
	callBarrier
	callGather
	callAsync
	callInGroup
	callKinds
)

func newWorkers(random *rand.Rand) *workers {
	j := &workers{ranks: 2 + random.IntN(3), end: ends[random.IntN(len(ends))], isBeside: random.IntN(4) == 0}
	j.isLate = random.IntN(4) == 0
	j.by = random.IntN(j.ranks)
	j.members = random.Perm(j.ranks)[:1+random.IntN(j.ranks)]
	slices.Sort(j.members)
	for range 1 + random.IntN(8) {
		j.calls = append(j.calls, random.IntN(callKinds))
	}
	j.after = random.IntN(len(j.calls) + 1)
	j.calls = append(j.calls, callBarrier)
	j.errs, j.made = make([]error, j.ranks), make([]int, j.ranks)
	return j
}

func (j *workers) String() string {
	return fmt.Sprintf("%d ranks, calls %d, group %d; rank %d %s after %d calls", j.ranks, j.calls, j.members, j.by, j.end, j.after)
}

func (j *workers) spawn() {
	j.ctx, j.cancel = context.WithCancel(context.Background())
	defer j.cancel()
	j.stuck.Add(j.ranks)
	j.err = dist.Spawn(func(ctx context.Context, rank int) error {
		interleave.SetLabel(fmt.Sprint("rank ", rank))
		defer j.stuck.Done()
		j.errs[rank] = j.work(ctx, rank)
		return j.errs[rank]
	}, dist.WithRanks(j.ranks), dist.WithSpawnContext(j.ctx))
	j.stuck.Wait()
}

// work is the worker of a rank.
func (j *workers) work(ctx context.Context, rank int) error {
	isFaulty := rank == j.by
	if isFaulty {
		switch j.end {
		case endsAbsent:
			return nil
		case failsAbsent:
			return errEnough
		case waitsAbsent:
			interleave.Receive(ctx.Done())
			return nil
		}
	}
	if err := dist.InitProcessGroup("ccl", dist.WithConfig(spawnConfig), dist.WithTimeout(spawnTimeout)); err != nil {
		return err
	}
	group, err := dist.NewGroup(j.members)
	if err != nil {
		return err
	}

	if j.after > 0 { // a rank that is no member has made the group before the others
		if err := dist.Barrier(); err != nil {
			return err
		}
	}

	for i, call := range j.calls {
		if isFaulty && i == j.after && j.end != endsNormally {
			if hasEnded, err := j.finish(); hasEnded {
				return err
			}
		}
		if err := j.call(call, i, rank, group); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		j.made[rank]++
	}
	return dist.DestroyProcessGroup()
}

// finish ends the worker of rank by, or lets it go on.
func (j *workers) finish() (hasEnded bool, err error) {
	switch j.end {
	case endsByError:
		return true, errEnough
	case endsByPanic:
		panic(errEnough)
	case endsByGoexit:
		runtime.Goexit()
	case endsDestroyed:
		return true, dist.DestroyProcessGroup()
	case endsCanceled:
		j.cancel()
		return false, nil
	case endsLate:
		interleave.Sleep(spawnTimeout * 3 / 2)
		return false, nil
	case endsStuck:
		interleave.Sleep(10 * spawnTimeout)
		return false, nil
	}
	return true, nil
}

// call makes a call of a rank and checks its result.
func (j *workers) call(kind, number, rank int, group *dist.ProcessGroup) error {
	x, sum := []int{rank + number}, 0
	for r := range j.ranks {
		if kind != callInGroup || slices.Contains(j.members, r) {
			sum += r + number
		}
	}

	switch kind {
	case callBarrier:
		return dist.Barrier()
	case callGather:
		all := make([]int, j.ranks)
		if err := dist.AllGather(all, x); err != nil {
			return err
		}
		x[0] = 0
		for _, v := range all {
			x[0] += v
		}
	case callAsync:
		w, err := dist.AllReduceAsync(x, dist.Sum)
		if err != nil {
			return err
		}
		if err := w.Wait(context.Background()); err != nil {
			return err
		}
	case callInGroup:
		if group == nil {
			return nil
		}
		if err := dist.AllReduce(x, dist.Sum, dist.WithGroup(group)); err != nil {
			return err
		}
	default:
		if err := dist.AllReduce(x, dist.Sum); err != nil {
			return err
		}
	}
	if x[0] != sum {
		return fmt.Errorf("the result is %d, want %d", x[0], sum)
	}
	return nil
}

// check returns what is wrong with how the job has ended.
func (j *workers) check() error {
	of, err := j.rankErrors()
	if err != nil {
		return err
	}
	if j.end == endsNormally && !j.isLate {
		return j.err
	}
	canSucceed := j.isLate || j.end == endsCanceled // all calls may have ended before
	for rank, made := range j.made {
		if rank != j.by && made < j.shared() && !canSucceed && !j.isAbsent() {
			return fmt.Errorf("rank %d has made %d calls, and rank %d ended after %d: %w", rank, made, j.by, j.after, j.err)
		}
		if rank != j.by && j.errs[rank] == nil && !canSucceed {
			return fmt.Errorf("rank %d has no error", rank)
		}
	}
	hasCause := func(rank int) bool {
		isStuck := slices.ContainsFunc(of, func(e *dist.RankError) bool {
			_, isStuck := errors.AsType[*dist.StuckError](e.Err)
			return e.Rank == rank && isStuck
		})
		hasEnded := errors.Is(j.errs[rank], dist.ErrNotInitialized) || errors.Is(j.errs[rank], dist.ErrClosed)
		return j.hasCause(rank) || j.isLate && isStuck && hasEnded // Spawn has gone on without it
	}
	if err := checkBlame(j.errs, hasCause); err != nil {
		return err
	}
	if canSucceed {
		return nil
	}
	return j.checkFirst(of)
}

// shared returns how many calls have ended on all ranks if they have on rank by: those until the
// last in which it has a part.
func (j *workers) shared() int {
	for n := j.after; n > 0; n-- {
		if j.calls[n-1] != callInGroup || slices.Contains(j.members, j.by) {
			return n
		}
	}
	return 0
}

// waits reports whether timeouts fall due.
func (j *workers) waits() bool {
	return slices.Contains([]end{waitsAbsent, endsLate, endsStuck}, j.end)
}

func (j *workers) isAbsent() bool {
	return j.end == endsAbsent || j.end == failsAbsent || j.end == waitsAbsent
}

// rankErrors returns the errors of Spawn by rank, which are those of the workers.
func (j *workers) rankErrors() (of []*dist.RankError, err error) {
	if joined, ok := j.err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			e, ok := err.(*dist.RankError)
			if !ok {
				return nil, fmt.Errorf("Spawn returns a %T: %w", err, err)
			}
			of = append(of, e)
		}
	} else if j.err != nil {
		return nil, fmt.Errorf("Spawn returns %w", j.err)
	}

	for rank, err := range j.errs {
		i := slices.IndexFunc(of, func(e *dist.RankError) bool { return e.Rank == rank })
		if i >= 0 {
			if _, isStuck := errors.AsType[*dist.StuckError](of[i].Err); isStuck {
				continue
			}
		}
		doesNotReturn := rank == j.by && (j.end == endsByPanic || j.end == endsByGoexit)
		if (i >= 0) != (err != nil || doesNotReturn) {
			return nil, fmt.Errorf("the worker of rank %d has returned %v, and Spawn %w", rank, err, j.err)
		}
	}
	return of, nil
}

// hasCause reports whether the error of a rank is of what goes wrong in the job.
func (j *workers) hasCause(rank int) bool {
	err := j.errs[rank]
	late := timeoutOf(err)
	switch {
	case rank == j.by && j.end != endsNormally:
		return true
	case j.end == endsCanceled && errors.Is(err, context.Canceled):
		return true
	}
	_, isOfOther := errors.AsType[*dist.AbortedError](err)
	isSlow := errors.Is(err, context.DeadlineExceeded) && !isOfOther // by itself, in NewGroup
	return j.isLate && (isSlow || late != nil && late.After == spawnTimeout)
}

// checkFirst checks the first error of Spawn, which is the cause.
func (j *workers) checkFirst(of []*dist.RankError) error {
	if len(of) == 0 {
		return errors.New("Spawn returns nil")
	}
	first := of[0]
	panicked, _ := errors.AsType[*dist.PanicError](first.Err)
	lost, _ := errors.AsType[*dist.PeerLostError](first.Err)
	late, _ := errors.AsType[*dist.TimeoutError](first.Err)
	stuck, _ := errors.AsType[*dist.StuckError](j.err)
	isRight := false
	switch j.end {
	case endsByError, failsAbsent:
		isRight = first.Rank == j.by && first.Err == errEnough
	case endsByPanic:
		isRight = first.Rank == j.by && panicked != nil && panicked.Value == any(errEnough) && len(panicked.Stack) > 0
	case endsByGoexit:
		isRight = first.Rank == j.by && errors.Is(first.Err, dist.ErrGoexit)
	case endsEarly, endsDestroyed, endsAbsent:
		isRight = first.Rank != j.by && lost != nil && slices.Contains(namedRanks(first.Err), j.by)
	case waitsAbsent:
		isRight = first.Rank != j.by && late != nil && slices.Equal(late.Missing, []int{j.by})
	case endsLate:
		isRight = first.Rank != j.by && late != nil && slices.Contains(namedRanks(first.Err), j.by)
	case endsStuck:
		isRight = stuck != nil && stuck.Rank == j.by && len(stuck.Stack) > 0
	}
	if !isRight {
		return fmt.Errorf("Spawn returns %w", j.err)
	}
	return nil
}
