package dist

import (
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/interleave"
)

// callFailed is called for every failed call of the rank, before the call returns.
func (r *rank) callFailed(c *ccl.Communicator, call *CallError) {
	err, ok := errors.AsType[*CollectiveFailedError](call)
	if !ok {
		return
	}
	err.HideRank = r.job != solo // RankError names it
	if r.job.launched != nil {
		r.reportCall(c, call, err)
		return
	}
	r.addCause(c, err)
	j := r.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if isMessage(err) { // its rank may try again: see waitedInVain
		r.late = 0
		j.watch()
		return
	}

	r.back = true
	about := failure.WithoutCause(err.Err)
	_, isPassedOn := errors.AsType[*AbortedError](about) // its cause may be an error of another group
	late, ok := errors.AsType[*TimeoutError](about)
	if isPassedOn || !ok {
		j.watch()
		return
	}

	var ranks []int
	for _, rank := range slices.Concat(late.Missing, late.Behind) {
		ranks = append(ranks, c.GlobalRank(rank))
	}
	j.waitedFor(ranks, max(late.After, c.Selector().Timeout()))
}

// isMessage reports whether a send or a receive returned err.
func isMessage(err *CollectiveFailedError) bool {
	return err.Operation == "send" || err.Operation == "recv"
}

// abortGrace is how long a call that lost a peer waits for the peer's worker to end,
// counted from when the peer left. A failing worker usually leaves by a deferred
// DestroyProcessGroup, and its error is known a moment later.
const abortGrace = 250 * time.Millisecond

// addCause replaces the error of a call that lost a peer by the error of the peer's
// worker, if the worker failed.
func (r *rank) addCause(c *ccl.Communicator, err *CollectiveFailedError) {
	lost, ok := err.Err.(*PeerLostError) //nolint:errorlint // a wrapped one has words of its own
	if !ok || lost.Rank == err.Rank {
		return
	}
	peer := r.job.ranks[c.GlobalRank(lost.Rank)]
	r.job.mu.Lock()
	rest := time.Until(peer.leftAt.Add(abortGrace))
	r.job.mu.Unlock()
	if rest > 0 && !isMessage(err) { // a message's call holds a lock that others need
		timer := interleave.NewTimer(rest)
		defer timer.Stop()
		interleave.First(peer.done, timer.C)
	}
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	if peer.err != nil {
		err.Err = &AbortedError{By: lost.Rank, Cause: peer.err}
	}
}
