package groupsync

import "github.com/goccl/goccl/internal/interleave"

// Withdraw implements transport.Endpoint for calls in which each rank runs its own body.
// (syncmodel: earlyLeave, deadAreOut, leaverTestsDone)
//
// A rank that is done cannot fail the call for itself, because the last rank may be done next and
// succeed. When every rank is done or out, all ranks see the same: the call has succeeded if none
// is out without being done.
func (r *Member) Withdraw() (ended bool) {
	r.StepOut()
	if !r.call.exposed || !r.state.hasArrived(r.call.seq) {
		return false
	}

	r.awaitOthers(func(peer int) bool { return !r.group.states[peer].isInside(r.call.seq) })
	return r.call.unended == uint32(r.call.seq) && r.AreAllDone()
}

// ResolveRound leaves the current call after a failure in its last round, the one after round. It
// returns when every other rank has arrived there or is out, and reports whether all have arrived:
// then those that do not know of the failure succeed. (rule leaverTestsRound)
//
// All ranks have entered the call, or the memory of the states is gone.
func (r *Member) ResolveRound(round *uint64, word func(rank int) *interleave.Uint64) (isComplete bool) {
	hasArrived := func(rank int) bool { return word(rank).Load() > *round }
	r.StepOut()
	r.awaitOthers(func(peer int) bool { return hasArrived(peer) || !r.group.states[peer].isInside(r.call.seq) })
	for rank := range r.group.states {
		if !hasArrived(rank) {
			return false
		}
	}
	*round++
	return true
}

// awaitOthers is WaitOut until each other rank is through with the call, or silent.
func (r *Member) awaitOthers(isThrough func(peer int) bool) {
	peer := 0 // all ranks below it are through or silent
	r.WaitOut(func() bool {
		for ; peer < len(r.group.states); peer++ {
			if peer != r.rank && !isThrough(peer) && !r.isSilent(peer) {
				return false
			}
		}
		return true
	})
}

// isSilent reports whether nothing more that peer does in the call reaches this rank: it is dead,
// or ranks share no memory and it has left.
func (r *Member) isSilent(peer int) bool {
	return r.isDead(peer) || r.group.remote != nil && r.group.HasDeparted(peer)
}

// WithdrawFromCopies is Withdraw where no rank touches the memory of another. It waits for the
// others only if this rank is done.
func (r *Member) WithdrawFromCopies() (ended bool) {
	if r.call.unended == uint32(r.call.seq) {
		return r.Withdraw()
	}
	r.StepOut()
	return false
}

// StepOut marks this rank as having left the current call on a failure, and wakes all ranks.
// (syncmodel: outOfEveryCall)
func (r *Member) StepOut() {
	if r.state.waitOn.Load()&gaveUp != 0 { // the failure is recorded: no other rank looks for one to blame
		r.state.waitOn.Store(0)
	}
	r.state.out.Store(r.call.seq)
	r.group.announce()
}

// WaitOut waits until isOut returns true. It follows StepOut.
//
// Contexts and Close do not interrupt it, because peers may still be inside a kernel that uses
// this rank's buffers. Peers check for the failure often; if a kernel nevertheless does not
// return, WaitOut gives up after the call's timeout. A separate timer measures that time, and
// Close does not stop it.
func (r *Member) WaitOut(isOut func() bool) {
	if isOut() {
		return
	}
	var isLate interleave.Bool
	if after := r.deadline.limit.After; after > 0 {
		timer := interleave.AfterFunc(after, func() {
			isLate.Store(true)
			r.group.Wake(r.rank)
		})
		defer timer.Stop()
	}

	r.state.waitOn.Store(anyRank)
	r.group.words.sleepers.Add(1)
	for !isOut() && !isLate.Load() {
		r.group.rest.Sleep(r.rank, nil)
	}
	r.group.words.sleepers.Add(-1)
	r.state.waitOn.Store(0)
}

// Leave makes this rank leave the group. It returns true for the first call only.
func (r *Member) Leave() bool {
	if !r.isClosed.CompareAndSwap(false, true) {
		return false
	}
	r.mu.Lock()
	if r.deadline.ticker != nil {
		r.deadline.ticker.stop()
	}
	if r.home.stop != nil {
		r.home.stop()
	}
	r.mu.Unlock()

	r.state.departed.Store(1)
	r.group.announce()
	return true
}
