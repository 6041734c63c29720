package dist

import (
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/goroutine"
	"github.com/goccl/goccl/internal/interleave"
)

// A worker is stuck if all of these hold, and still hold one timeout later:
//   - a peer timed out waiting for it: in a collective, in InitProcessGroup, or in a
//     message whose timeout failed the peer's worker
//   - no call has since told it that its group failed
//   - all other workers have ended
//
// Spawn then returns without it.

// waitedFor records that a wait for ranks timed out after that time. The caller holds
// job.mu.
func (j *job) waitedFor(ranks []int, after time.Duration) {
	for _, r := range j.ranks {
		if slices.Contains(ranks, r.number) {
			r.late = max(r.late, after)
		}
	}
	j.watch()
}

// waitedInVain calls waitedFor if the worker of r failed by the timeout of a message. The
// caller holds job.mu.
func (j *job) waitedInVain(r *rank) {
	failed, ok := errors.AsType[*CollectiveFailedError](r.err)
	if !ok || !isMessage(failed) || failed.Group != "" {
		return
	}
	if late, ok := errors.AsType[*TimeoutError](failed.Err); ok {
		j.waitedFor(late.Behind, max(late.After, r.timeout))
	}
}

// watch restarts the timer of giveUp if all living workers are late, and stops it
// otherwise. The caller holds job.mu.
func (j *job) watch() {
	if j.giveUpTimer != nil {
		j.giveUpTimer.Stop()
		j.giveUpTimer = nil
	}
	if late, limit := j.lateWorkers(); late != nil {
		j.giveUpTimer = interleave.AfterFunc(limit, func() { j.giveUp(limit) })
	}
}

// lateWorkers returns the ranks of all living workers and their longest timeout, or nil
// if one of them is not late. The caller holds job.mu.
func (j *job) lateWorkers() (late []*rank, limit time.Duration) {
	for _, r := range j.ranks {
		switch {
		case r.ended:
		case r.late == 0 || r.back:
			return nil, 0
		default:
			late, limit = append(late, r), max(limit, r.late)
		}
	}
	return late, limit
}

// giveUp ends the ranks whose workers are stuck, unless one has made a call meanwhile.
func (j *job) giveUp(after time.Duration) {
	j.mu.Lock()
	stuck, _ := j.lateWorkers()
	j.mu.Unlock()
	for _, r := range stuck {
		err := &StuckError{Rank: r.number, After: after, Stack: r.stack()}
		if _, now := r.end(err); now {
			r.finished()
		}
	}
}

// stack returns the stack of the worker's goroutine.
func (r *rank) stack() []byte {
	spawned.Lock()
	id := r.goroutine
	spawned.Unlock()
	return goroutine.Stack(id)
}

// finished is the last action of a worker's goroutine; giveUp calls it for a stuck one.
func (r *rank) finished() {
	if !r.gone.Swap(true) && r.job.running.Add(-1) == 0 {
		interleave.Step()
		close(r.job.idle)
	}
}
