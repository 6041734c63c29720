package dist

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// attempt is one collective try to initialise the default group: the n-th call
// of InitProcessGroup by every rank of a job. Each rank first meets the others,
// then connects, then brings in its verdict; the attempt succeeds on all ranks
// or on none.
type attempt struct {
	job    *job
	number int           // of the process's attempts, from 1
	met    chan struct{} // closed when all ranks are here
	over   chan struct{} // closed when the attempt is decided

	// Guarded by job.mu:
	begun     int    // ranks that have begun
	here      []bool // ranks that have come to meet the others
	arrived   int    // how many they are
	endpoints []transport.Endpoint
	verdicts  int        // ranks that have brought in theirs
	lost      *RankError // the first that could not connect because of another

	// Guarded by job.mu until over is closed, and constant from then on:
	failed bool
	cause  error // why it failed
	by     int   // because of this rank, or nobody
}

// nobody stands for the rank that made an attempt fail where none did anything
// that it would report itself.
const none = -1

// errElsewhere is the verdict of a rank that finds the attempt failed already.
var errElsewhere = errors.New("the attempt failed on another rank")

// attempts counts those of the process: in one that was launched, for the names
// by which processes meet.
var attempts atomic.Int64

func newAttempt(j *job) *attempt {
	return &attempt{
		job:    j,
		number: int(attempts.Add(1)),
		met:    make(chan struct{}),
		over:   make(chan struct{}),
		here:   make([]bool, len(j.ranks)),
	}
}

// isOver reports whether the attempt is decided.
func (a *attempt) isOver() bool {
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

// meet waits until all ranks are here and returns r's endpoint. The endpoints
// are made no earlier because a transport chooses its way of waiting by how many
// ranks the process hosts, and by then nobody is in an earlier group any more.
func (a *attempt) meet(r *rank, timeout time.Duration) (transport.Endpoint, error) {
	j := a.job
	if j.launched != nil {
		return a.meetProcesses(timeout)
	}
	j.mu.Lock()
	a.here[r.number] = true
	if a.arrived++; a.arrived == len(j.ranks) && !a.failed {
		a.endpoints = local.New(len(j.ranks))
		close(a.met)
	}
	j.mu.Unlock()

	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	var late *TimeoutError
	select {
	case <-a.met:
	case <-a.over:
	case <-j.ctx.Done():
	case <-expired:
		late = &TimeoutError{After: timeout}
	}

	// What ended the wait may have come together with what was waited for.
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case a.endpoints != nil:
		return a.endpoints[r.number], nil
	case a.failed:
		return nil, errElsewhere
	case late != nil:
		for number, here := range a.here {
			if !here {
				late.Missing = append(late.Missing, number)
			}
		}
		err := fmt.Errorf("waiting for all %d ranks to call dist.InitProcessGroup: %w", len(j.ranks), late)
		a.fail(r.number, err)
		j.waitedFor(late.Missing, timeout)
		return nil, err
	default:
		err := transport.ContextError(j.ctx)
		a.fail(r.number, err)
		return nil, err
	}
}

// conclude brings in the verdict of rank r and waits for that on the whole: nil
// on all ranks, or on none.
func (a *attempt) conclude(r *rank, err error) error {
	own := err != nil && !errors.Is(err, errElsewhere) && !consequence(r.number, err)
	a.job.mu.Lock()
	a.verdicts++
	if err != nil && a.lost == nil {
		a.lost = &RankError{r.number, err}
	}
	switch {
	case a.failed:
	case own:
		a.fail(r.number, err)
	case a.verdicts < len(a.job.ranks):
		// Whoever failed this rank, if it failed, is about to say why.
	case a.lost != nil:
		a.fail(a.lost.Rank, a.lost.Err)
	default:
		close(a.over)
	}
	a.job.mu.Unlock()

	<-a.over
	switch {
	case !a.failed:
		return nil
	case own:
		return err
	case a.by == none || a.by == r.number:
		return a.cause
	default:
		return &AbortedError{By: a.by, Cause: a.cause}
	}
}

// fail decides the attempt, unless it is decided. job.mu is held.
func (a *attempt) fail(by int, cause error) {
	if !a.isOver() {
		a.failed, a.by, a.cause = true, by, cause
		close(a.over)
	}
}
