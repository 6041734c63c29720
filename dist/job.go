package dist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/goroutine"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/launchenv"
)

// job is one Spawn, or a process that does not call it: the ranks it hosts and how they
// meet.
type job struct {
	ranks    []*rank         // hosted by this process
	size     int             // number of ranks in all processes
	launched *launchenv.Job  // the launcher's job, nil if no launcher started the process
	from     string          // describes where size comes from
	ctx      context.Context // for calls without a context of their own
	config   *config.Config  // loaded by Spawn, or nil

	ending interleave.Mutex // held while a worker's end fails its groups; before mu

	mu          interleave.Mutex
	open        map[int]*rendezvous         // by number; those that some rank has yet to enter
	ended       []*rank                     // in the order in which their workers ended
	failed      *RankError                  // the first that ended with an error
	giveUpTimer *interleave.Timer           // for workers that may be stuck
	leave       func(context.Context) error // of the transport by which the process has joined

	running interleave.Int64 // workers that Spawn waits for
	idle    chan struct{}    // closed when running is 0
}

// rank is one rank of a job, from the start of its worker to its end.
type rank struct {
	job       *job
	number    int
	label     goroutine.Label // of the worker's goroutine
	goroutine int64           // its number
	// group is the default group; nil before InitProcessGroup and after
	// DestroyProcessGroup. It is written under job.mu.
	group interleave.Pointer[ProcessGroup]
	gone  interleave.Bool // Spawn no longer waits for it
	done  chan struct{}   // closed when the worker has ended

	// Guarded by job.mu:
	groups  []*ProcessGroup // made of the default one
	inits   int             // calls of InitProcessGroup so far
	joining *rendezvous     // the current one
	ended   bool            // the worker has ended
	err     error           // of the worker, once it has ended
	late    time.Duration   // the longest timeout of a peer that waited for it, or 0
	back    bool            // a call has told it that its group failed
	timeout time.Duration   // of the last default group
	leftAt  time.Time       // when it last called DestroyProcessGroup
	drained error           // of drain, after a worker that returned nil
}

// newJob makes a job of that many ranks, or, unless l is nil, of l's one rank.
func newJob(ctx context.Context, l *launchenv.Job, ranks int, from string, cfg *config.Config) *job {
	j := &job{
		size:     ranks,
		launched: l,
		from:     from,
		ctx:      ctx,
		config:   cfg,
		open:     map[int]*rendezvous{},
		idle:     make(chan struct{}),
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

// identify determines which rank a process without Spawn is; every InitProcessGroup
// calls it.
func (j *job) identify() error {
	l, err := launchOrRefuse()
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

// enter enters the rank's next rendezvous.
func (r *rank) enter() (*rendezvous, error) {
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
	r.inits++
	m := j.open[r.inits]

	if m == nil {
		m = newRendezvous(j)
		for _, gone := range j.ended {
			if gone.inits < r.inits {
				m.fail(gone.absence())
			}
		}
		if !m.failed {
			j.open[r.inits] = m
		}
	}

	if m.entered++; m.entered == len(j.ranks) {
		delete(j.open, r.inits)
	}
	r.joining = m
	return m, nil
}

// endJoin ends the rank's rendezvous: g becomes its default group, nil if the
// rendezvous failed.
func (r *rank) endJoin(g *ProcessGroup) error {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	r.joining = nil
	if g != nil && r.ended {
		return r.endedError()
	}
	r.group.Store(g)
	if g != nil {
		g.failBy(r.job.failed)
		r.timeout = g.comm.Selector().Timeout()
	}
	return nil
}

// leave removes g from the rank, and with the default group all groups made of it. It
// returns the groups to close, which the rank's peers notice.
func (r *rank) leave(g *ProcessGroup) []*ProcessGroup {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	r.leftAt = time.Now()
	if g.isDefault() {
		return r.take()
	}
	r.groups = slices.DeleteFunc(r.groups, func(other *ProcessGroup) bool { return other == g })
	return []*ProcessGroup{g}
}

// take removes and returns the rank's groups, the default group last. The caller holds
// job.mu.
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

// drain waits for the worker's unfinished calls, sends, and receives that have matched
// a message. It returns their errors and counts the unmatched receives.
func (r *rank) drain(ctx context.Context) error {
	r.job.mu.Lock()
	groups := r.allGroups()
	r.job.mu.Unlock()
	var errs []error
	for _, g := range groups {
		errs = append(errs, g.comm.Drain(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the worker returned nil before its asynchronous calls had ended: %w", err)
	}
	return nil
}

// outcome returns Spawn's error for the rank, whose worker has ended.
func (r *rank) outcome() error {
	if r.err != nil {
		return r.err
	}
	return r.drained
}

// end records that the rank's worker has ended with err. Groups and rendezvous that
// still need the rank fail, which may fail other workers before end returns; so end
// returns the first failure, or nil. now is false if the worker had ended before.
func (r *rank) end(err error) (first *RankError, now bool) {
	j := r.job
	j.ending.Lock() // a worker that fails because of this one finds all groups of both failed by this one
	defer j.ending.Unlock()
	j.mu.Lock()
	if r.ended {
		defer j.mu.Unlock()
		return j.failed, false
	}

	r.ended, r.err = true, err
	j.ended = append(j.ended, r)
	if err != nil && j.failed == nil {
		j.failed = &RankError{r.number, err}
	}

	first = j.failed
	interleave.Step()
	close(r.done)
	for number, m := range j.open {
		if number > r.inits {
			m.fail(r.absence())
			delete(j.open, number)
		}
	}

	if r.joining != nil {
		r.joining.fail(r.absence())
	}
	groups := r.take()
	j.waitedInVain(r)
	j.watch()
	var failing []*ProcessGroup
	if first != nil && first.Rank == r.number {
		failing = j.groupsOf(r)
	}

	j.mu.Unlock()
	for _, g := range failing {
		g.failBy(first)
	}
	for _, g := range groups {
		if err != nil {
			g.comm.Abort(err)
		}
		_ = g.close() // does not wait; drain has reported what is dropped
	}
	return first, true
}

// groupsOf returns the other ranks' groups, some of which r may have left already. The caller
// holds job.mu.
func (j *job) groupsOf(r *rank) (groups []*ProcessGroup) {
	for _, other := range j.ranks {
		if other == r {
			continue
		}
		groups = append(groups, other.allGroups()...)
	}
	return groups
}

// allGroups returns the rank's groups, the default group last. The caller holds job.mu.
func (r *rank) allGroups() []*ProcessGroup {
	groups := slices.Clone(r.groups)
	if g := r.group.Load(); g != nil {
		groups = append(groups, g)
	}
	return groups
}

// absence returns the rank that makes a rendezvous fail, and why, if it still needs r,
// whose worker has ended. The caller holds job.mu.
func (r *rank) absence() (by int, cause error) {
	if r.err != nil {
		return r.number, r.err
	}
	return noRank, fmt.Errorf("a worker returned without a call of dist.InitProcessGroup to match: %w", &PeerLostError{Rank: r.number})
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
	return &explained{
		"", fmt.Sprintf("the worker of rank %d has ended, and its process group with it: let it wait for the goroutines that make calls", r.number),
		[]error{ErrNotInitialized},
	}
}
