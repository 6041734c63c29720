package dist

import (
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/goroutine"
)

// A worker is stuck if its peers timed out waiting for it, in a collective or an attempt to
// initialise, or in a message by whose timeout a peer's worker failed; if it has made no call
// since, by which it would know; if all other workers have ended; and if after another timeout that is still so.
// Spawn then returns without it.

// waitedFor notes that ranks were waited for in vain, and for how long. job.mu is held.
func (j *job) waitedFor(ranks []int, after time.Duration) {
	for _, r := range j.ranks {
		if slices.Contains(ranks, r.number) {
			r.late = max(r.late, after)
		}
	}
	j.watch()
}

// waitedInVain notes for whom a worker has waited that failed by the timeout of a message.
// job.mu is held.
func (j *job) waitedInVain(r *rank) {
	failed, ok := errors.AsType[*CollectiveFailedError](r.err)
	if !ok || !isMessage(failed) || failed.Group != "" {
		return
	}
	if late, ok := errors.AsType[*TimeoutError](failed.Err); ok {
		j.waitedFor(late.Behind, max(late.After, r.timeout))
	}
}

// watch begins or ends the wait for workers of which nothing is to be expected. job.mu is
// held.
func (j *job) watch() {
	var limit time.Duration
	waits := false
	for _, r := range j.ranks {
		if !r.ended {
			if waits = r.isLate(); !waits {
				break
			}
			limit = max(limit, r.late)
		}
	}
	if j.giveUpTimer != nil {
		j.giveUpTimer.Stop()
		j.giveUpTimer = nil
	}
	if waits {
		j.giveUpTimer = time.AfterFunc(limit, func() { j.giveUp(limit) })
	}
}

// isLate reports whether others have waited for the rank in vain and it has not come back.
// job.mu is held.
func (r *rank) isLate() bool { return r.late > 0 && !r.back }

// giveUp ends the ranks whose workers are stuck, unless one of those that were has come.
func (j *job) giveUp(after time.Duration) {
	j.mu.Lock()
	var stuck []*rank
	for _, r := range j.ranks {
		if !r.ended && !r.isLate() {
			stuck = nil
			break
		} else if !r.ended {
			stuck = append(stuck, r)
		}
	}
	j.mu.Unlock()
	for _, r := range stuck {
		err := &StuckError{Rank: r.number, After: after, Stack: r.stack()}
		if _ = r.end(err); r.isStuck() {
			r.finished()
		}
	}
}

// stack returns where the worker is.
func (r *rank) stack() []byte {
	spawned.Lock()
	id := r.goroutine
	spawned.Unlock()
	return goroutine.Stack(id)
}

// isStuck reports whether Spawn has given up the worker.
func (r *rank) isStuck() bool {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	_, stuck := r.err.(*StuckError) //nolint:errorlint // its own
	return stuck
}

// finished is the last that a worker's goroutine does, or is done for it if it is stuck.
func (r *rank) finished() {
	if !r.gone.Swap(true) && r.job.running.Add(-1) == 0 {
		close(r.job.over)
	}
}
