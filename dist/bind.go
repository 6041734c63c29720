package dist

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/internal/goroutine"
)

// bound holds the rank of every goroutine that has one of its own: those of
// workers and of Go.
var bound goroutine.Local[rank]

// solo is the job of a process that lives without Spawn.
var solo = newJob(context.Background(), nil, 1, "", nil)

// alone is the rank that goroutines without one act as: that of the only job
// there is, if it is a job of one.
var alone atomic.Pointer[rank]

func init() { alone.Store(solo.ranks[0]) }

// spawned holds the jobs whose Spawn has not returned.
var spawned = struct {
	sync.Mutex
	jobs   map[*job]struct{}
	labels map[goroutine.Label]*rank // of their workers
}{jobs: map[*job]struct{}{}, labels: map[goroutine.Label]*rank{}}

func (j *job) register() error {
	spawned.Lock()
	defer spawned.Unlock()
	if j.launched != nil && len(living()) > 0 {
		return &InvalidArgumentError{Operation: "spawn", Message: fmt.Sprintf(
			"%v, in one job at a time: wait for the other dist.Spawn to return, or call dist.DestroyProcessGroup first", j.launched)}
	}
	spawned.jobs[j] = struct{}{}
	chooseAlone()
	return nil
}

func (j *job) unregister() {
	spawned.Lock()
	defer spawned.Unlock()
	delete(spawned.jobs, j)
	for _, r := range j.ranks {
		delete(spawned.labels, r.label)
	}
	chooseAlone()
}

// bind makes the calling goroutine, a worker's, the rank's.
func (r *rank) bind() {
	bound.Set(r)
	spawned.Lock()
	defer spawned.Unlock()
	r.goroutine = goroutine.ID()
	r.label = goroutine.CurrentLabel()
	spawned.labels[r.label] = r
}

// refreshAlone has to be called after every change in which jobs live.
func refreshAlone() {
	spawned.Lock()
	defer spawned.Unlock()
	chooseAlone()
}

// chooseAlone is refreshAlone where spawned is locked.
func chooseAlone() {
	var r *rank
	if jobs := living(); len(jobs) == 0 {
		r = solo.ranks[0]
	} else if len(jobs) == 1 && len(jobs[0].ranks) == 1 {
		r = jobs[0].ranks[0]
	}
	alone.Store(r)
}

// living returns the jobs that a goroutine without a rank may mean: those that
// Spawn runs, and the process itself once it has a process group. spawned is
// locked.
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
	if r := alone.Load(); r != nil {
		return r, nil
	}
	return nil, unboundError()
}

func unboundError() error {
	spawned.Lock()
	defer spawned.Unlock()
	switch jobs := living(); len(jobs) {
	case 0: // it has ended in this very moment
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

// known returns the default group that the calling goroutine may ask about: its
// rank's own, or that of any rank of the only job there is, since most answers
// are the same on all of them.
func known() (g *ProcessGroup, own bool, err error) {
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

// Go starts fn in a goroutine that has the caller's rank, until fn returns or
// the rank's worker ends. A caller without a rank has none to give. Spawn does
// not wait for fn, and a panic in it ends the process, as in any goroutine. A nil fn is
// none.
func Go(fn func()) {
	if fn == nil {
		return
	}
	r := bound.Get()
	if r == nil {
		go fn()
		return
	}
	go func() {
		bound.Set(r)
		defer bound.Delete()
		fn()
	}()
}
