package dist

import (
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
)

// callFailed hears of every call of the rank that fails, before it returns.
func (r *rank) callFailed(c *ccl.Communicator, err *CollectiveFailedError) {
	if r.job.launched != nil {
		r.reportCall(c, err)
		return
	}
	r.addCause(c, err)
	j := r.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if isMessage(err) { // who waits for one may try again: see waitedInVain
		r.late = 0
		j.watch()
		return
	}
	r.back = true
	late, ok := errors.AsType[*TimeoutError](err.Err)
	if !ok {
		j.watch()
		return
	}
	var ranks []int
	for _, rank := range slices.Concat(late.Missing, late.Behind) {
		ranks = append(ranks, c.GlobalRank(rank))
	}
	j.waitedFor(ranks, max(late.After, c.Settings().Timeout()))
}

// isMessage reports whether a send or a receive has failed, and not a collective.
func isMessage(err *CollectiveFailedError) bool {
	return err.Operation == "send" || err.Operation == "recv"
}

// abortGrace is how long after a rank has left its group a call that has lost it waits for
// its worker to end. A worker that fails leaves by a deferred DestroyProcessGroup, as a rule,
// and Spawn has its error a moment later.
const abortGrace = 250 * time.Millisecond

// addCause puts the error of the worker into that of a call that has lost its rank, if the
// worker has failed.
func (r *rank) addCause(c *ccl.Communicator, err *CollectiveFailedError) {
	lost, ok := err.Err.(*PeerLostError) //nolint:errorlint // nothing else is lost by its text
	if !ok || lost.Rank == err.Rank {
		return
	}
	peer := r.job.ranks[c.GlobalRank(lost.Rank)]
	r.job.mu.Lock()
	rest := time.Until(peer.leftAt.Add(abortGrace))
	r.job.mu.Unlock()
	if rest > 0 && !isMessage(err) { // which holds the post's lock
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-peer.done:
		case <-timer.C:
		}
	}
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	if peer.err != nil {
		err.Err = &AbortedError{By: lost.Rank, Cause: peer.err}
	}
}
