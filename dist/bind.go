package dist

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/internal/goroutine"
	"github.com/goccl/goccl/internal/interleave"
)

// bound holds the rank of every goroutine that has its own: workers, and goroutines that Go
// started.
var bound goroutine.Local[rank]

// solo is the job of a process that does not call Spawn.
var solo = newJob(context.Background(), nil, 1, "", nil)

// soleRank is the rank that unbound goroutines act as: the rank of the only job in
// the process, if that job hosts one rank; otherwise nil.
var soleRank interleave.Pointer[rank]

func init() { soleRank.Store(solo.ranks[0]) }

// spawned holds the jobs whose Spawn has not returned.
var spawned = struct {
	interleave.Mutex
	jobs   map[*job]struct{}
	labels map[goroutine.Label]*rank // of their workers
}{jobs: map[*job]struct{}{}, labels: map[goroutine.Label]*rank{}}

func (j *job) register() error {
	spawned.Lock()
	defer spawned.Unlock()
	if j.launched != nil && len(living()) > 0 {
		return &InvalidArgumentError{Operation: "dist.spawn", Message: fmt.Sprintf(
			"%v, in one job at a time: wait for the other dist.Spawn to return, or call dist.DestroyProcessGroup first", j.launched)}
	}
	spawned.jobs[j] = struct{}{}
	chooseSoleRank()
	return nil
}

func (j *job) unregister() {
	spawned.Lock()
	defer spawned.Unlock()
	delete(spawned.jobs, j)
	for _, r := range j.ranks {
		delete(spawned.labels, r.label)
	}
	chooseSoleRank()
}

// bind gives the rank to the calling goroutine, which runs its worker.
func (r *rank) bind() {
	bound.Set(r)
	spawned.Lock()
	defer spawned.Unlock()
	r.goroutine = goroutine.ID()
	r.label = goroutine.CurrentLabel()
	spawned.labels[r.label] = r
}

// refreshSoleRank must be called whenever the living jobs change.
func refreshSoleRank() {
	spawned.Lock()
	defer spawned.Unlock()
	chooseSoleRank()
}

// chooseSoleRank is refreshSoleRank for callers that hold spawned.
func chooseSoleRank() {
	var r *rank
	if jobs := living(); len(jobs) == 0 {
		r = solo.ranks[0]
	} else if len(jobs) == 1 && len(jobs[0].ranks) == 1 {
		r = jobs[0].ranks[0]
	}
	soleRank.Store(r)
}

// living returns the running jobs: the jobs of Spawn, and the process itself while it has a
// process group. The caller holds spawned.
func living() []*job {
	var jobs []*job
	for j := range spawned.jobs {
		jobs = append(jobs, j)
	}
	if solo.ranks[0].group.Load() != nil {
		jobs = append(jobs, solo)
	}
	return jobs
}

// self returns the rank that the calling goroutine acts as.
func self() (*rank, error) {
	if r := bound.Get(); r != nil {
		return r, nil
	}
	if r := soleRank.Load(); r != nil {
		return r, nil
	}
	return nil, unboundError()
}

func unboundError() error {
	spawned.Lock()
	defer spawned.Unlock()
	switch jobs := living(); len(jobs) {
	case 0: // the job has just ended
		return notInitialized()
	case 1:
		return fmt.Errorf("dist: %w, and the process hosts %d: "+
			"call from the worker's own goroutine of dist.Spawn, start this one with dist.Go, or pass dist.WithGroup",
			ErrUnbound, len(jobs[0].ranks))
	default:
		return fmt.Errorf("dist: %w, and %d jobs live in this process: "+
			"start it with dist.Go from a goroutine that has a rank, or pass dist.WithGroup", ErrUnbound, len(jobs))
	}
}

// known returns the default group whose properties the calling goroutine may read: the group
// of its own rank, else of any rank of the only living job, since most properties
// are the same on all ranks.
func known() (g *ProcessGroup, isOwn bool, err error) {
	r, err := self()
	var jobs []*job
	if err != nil {
		spawned.Lock()
		r, jobs = spawned.labels[goroutine.CurrentLabel()], living()
		spawned.Unlock()
	}

	switch {
	case r != nil:
		g, err = r.current()
		return g, true, err
	case len(jobs) > 1:
		return nil, false, err
	}

	for _, j := range jobs {
		for _, r := range j.ranks {
			if g := r.group.Load(); g != nil {
				return g, false, nil
			}
		}
	}
	return nil, false, notInitialized()
}

// Go starts fn in a goroutine that has the caller's rank until fn returns or
// the rank's worker ends. If the caller has no rank, neither has fn. Spawn does
// not wait for fn, and a panic in fn ends the process, as in any goroutine. A nil fn is
// ignored.
func Go(fn func()) {
	if fn == nil {
		return
	}
	r := bound.Get()
	if r == nil {
		interleave.Go(fn)
		return
	}

	interleave.Go(func() {
		bound.Set(r)
		defer bound.Delete()
		fn()
	})
}
