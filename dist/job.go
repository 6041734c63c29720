package dist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/goroutine"
	"github.com/goccl/goccl/internal/launchenv"
)

// job is one Spawn, or a process without one: the ranks it hosts and how they
// find each other.
type job struct {
	ranks    []*rank         // that this process hosts
	size     int             // how many there are, in all processes
	launched *launchenv.Job  // whose one rank it hosts, nil if nobody launched it as one
	from     string          // where size comes from, in words
	ctx      context.Context // ends the calls that bring no context of their own
	config   *ccl.Config     // that Spawn has loaded, nil if it did not

	mu       sync.Mutex
	attempts map[int]*attempt // those that some rank has still to begin, by number
	ended    []*rank          // in the order in which their workers ended
	failed   *RankError       // the first that ended with an error
	patience *time.Timer      // for workers that may be stuck

	running atomic.Int64  // workers that Spawn waits for
	over    chan struct{} // closed when there are none
}

// rank is one rank of a job, from the start of its worker to the end of it.
type rank struct {
	job       *job
	number    int
	label     goroutine.Label // of the worker's goroutine
	goroutine int64           // its number
	// group is the default group; nil before InitProcessGroup and after
	// DestroyProcessGroup. It is written under job.mu.
	group atomic.Pointer[ProcessGroup]
	gone  atomic.Bool   // Spawn does not wait for it any more
	done  chan struct{} // closed when the worker has ended

	// Guarded by job.mu:
	groups   []*ProcessGroup // that were made of the default one
	attempts int             // calls of InitProcessGroup so far
	joining  *attempt        // the one under way
	ended    bool            // the worker has ended,
	err      error           // with this error;
	late     time.Duration   // how long others have waited for it in vain; 0: they have not
	back     bool            // it knows that its group has failed
	timeout  time.Duration   // of the last default group
	leftAt   time.Time       // when it called DestroyProcessGroup last
	left     error           // or it returned nil, and this is how what it had begun ended
}

// newJob makes the job of that many ranks, l's if it is one.
func newJob(ctx context.Context, l *launchenv.Job, ranks int, from string, config *ccl.Config) *job {
	j := &job{
		size:     ranks,
		launched: l,
		from:     from,
		ctx:      ctx,
		config:   config,
		attempts: map[int]*attempt{},
		over:     make(chan struct{}),
	}
	if l != nil {
		j.ranks = []*rank{newRank(j, l.Rank)}
		return j
	}
	for i := range ranks {
		j.ranks = append(j.ranks, newRank(j, i))
	}
	return j
}

func newRank(j *job, number int) *rank {
	return &rank{job: j, number: number, done: make(chan struct{})}
}

// identify finds out, in every attempt, which rank a process without Spawn is.
func (j *job) identify() error {
	l, err := launch()
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.launched, j.size, j.from, j.ranks[0].number = nil, 1, "this process is one rank", 0
	if l != nil {
		j.launched, j.size, j.from, j.ranks[0].number = l, l.Size, l.String(), l.Rank
	}
	return nil
}

// begin enters the rank's next attempt to initialise.
func (r *rank) begin() (*attempt, error) {
	j := r.job
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case r.ended:
		return nil, r.endedError()
	case r.joining != nil:
		return nil, fmt.Errorf("dist: another goroutine of rank %d is in InitProcessGroup: %w", r.number, ErrConcurrentUse)
	case r.group.Load() != nil:
		return nil, fmt.Errorf("dist: %w on rank %d: call dist.DestroyProcessGroup first", ErrAlreadyInitialized, r.number)
	}
	r.late, r.back = 0, false
	r.attempts++
	a := j.attempts[r.attempts]
	if a == nil {
		a = newAttempt(j)
		for _, gone := range j.ended {
			if gone.attempts < r.attempts {
				a.fail(gone.absence())
			}
		}
		if !a.failed {
			j.attempts[r.attempts] = a
		}
	}
	if a.begun++; a.begun == len(j.ranks) {
		delete(j.attempts, r.attempts)
	}
	r.joining = a
	return a, nil
}

// settle ends the rank's attempt: g becomes its default group, nil if the
// attempt failed.
func (r *rank) settle(g *ProcessGroup) error {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	r.joining = nil
	if g != nil && r.ended {
		return r.endedError()
	}
	r.group.Store(g)
	if g != nil {
		r.timeout = g.comm.Settings().Timeout()
	}
	return nil
}

// leave takes its groups away from the rank. The default group is the last of them.
func (r *rank) leave() []*ProcessGroup {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	return r.take()
}

// leaves notes that the rank leaves a group, before its peers can see it.
func (r *rank) leaves() {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	r.leftAt = time.Now()
}

// take is leave where job.mu is held.
func (r *rank) take() []*ProcessGroup {
	groups := r.groups
	if g := r.group.Swap(nil); g != nil {
		groups = append(groups, g)
	}
	r.groups = nil
	for _, g := range groups {
		g.closed.Store(true)
	}
	return groups
}

// drain waits until what the worker has begun and not waited for has ended: calls, sends,
// and receives that a message has matched. Its error is theirs, and counts what is left.
func (r *rank) drain(ctx context.Context) error {
	r.job.mu.Lock()
	groups := slices.Clone(r.groups)
	if g := r.group.Load(); g != nil {
		groups = append(groups, g)
	}
	r.job.mu.Unlock()
	var errs []error
	for _, g := range groups {
		errs = append(errs, g.comm.Drain(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the worker returned nil before all that it had begun had ended: %w", err)
	}
	return nil
}

// outcome is the error that Spawn returns for the rank, whose worker has ended.
func (r *rank) outcome() error {
	if r.err != nil {
		return r.err
	}
	return r.left
}

// end is the end of the rank's worker. Groups and attempts that still need the
// rank fail, and may make other workers fail before end returns, so it returns
// who was the first to fail, if any has.
func (r *rank) end(err error) (first *RankError) {
	j := r.job
	j.mu.Lock()
	if r.ended {
		defer j.mu.Unlock()
		return j.failed // Spawn has given it up
	}
	r.ended, r.err = true, err
	j.ended = append(j.ended, r)
	if err != nil && j.failed == nil {
		j.failed = &RankError{r.number, err}
	}
	first = j.failed
	close(r.done)
	for number, a := range j.attempts {
		if number > r.attempts {
			a.fail(r.absence())
			delete(j.attempts, number)
		}
	}
	if r.joining != nil {
		r.joining.fail(r.absence())
	}
	groups := r.take()
	j.waitedInVain(r)
	j.watch()
	j.mu.Unlock()
	for _, g := range groups {
		if err != nil {
			g.comm.Abort(err)
		}
		_ = g.close() // it never waits; drain has said what is dropped
	}
	return first
}

// absence says because of whom, and why, an attempt fails that needs the rank
// now that its worker has ended. job.mu is held.
func (r *rank) absence() (by int, cause error) {
	if r.err != nil {
		return r.number, r.err
	}
	return none, fmt.Errorf("the worker of rank %d returned without a call of dist.InitProcessGroup to match: %w",
		r.number, &PeerLostError{Rank: r.number})
}

// current returns the rank's default group.
func (r *rank) current() (*ProcessGroup, error) {
	if g := r.group.Load(); g != nil {
		return g, nil
	}
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	if r.ended {
		return nil, r.endedError()
	}
	return nil, notInitialized()
}

func notInitialized() error {
	return fmt.Errorf("dist: %w: call dist.InitProcessGroup first", ErrNotInitialized)
}

func (r *rank) endedError() error {
	return fmt.Errorf("dist: the worker of rank %d has ended, and its process group with it: %w", r.number, ErrNotInitialized)
}

// said returns the ranks that have accepted or refused the arguments of the call, or
// have not come to it ("not there yet"),
// that failed because not all did the same.
func said(err error, value string) []int {
	m, ok := errors.AsType[*MismatchError](err)
	if !ok || m.Field != "arguments" {
		return nil
	}
	var ranks []int
	for _, v := range m.Values {
		if v.Value == value { // of "refused" there is one for each reason
			ranks = append(ranks, v.Ranks...)
		}
	}
	return ranks
}
