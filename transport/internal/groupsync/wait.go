package groupsync

import "github.com/goccl/goccl/internal/interleave"

// purpose is the event that a wait is for.
type purpose uint8

const (
	forEntry      purpose = iota // for all peers to enter the call
	forCompletion                // for all peers to complete it
	forRejection                 // for all peers to reject the calls before
	forMessage                   // for one peer to send or take a message
)

// await returns when *word has reached target, which peer stores, or when the wait is
// interrupted.
func (r *Member) await(word *interleave.Uint64, target uint64, peer int, why purpose) error {
	if word.Load() >= target {
		return nil
	}
	return r.awaitSlow(word, target, peer, why)
}

// awaitSlow is awaitCondition for a word. Among 16 ranks a condition costs a barrier 5 %.
func (r *Member) awaitSlow(word *interleave.Uint64, target uint64, peer int, why purpose) error {
	w := wait{wakes: r.budgets.woke}
	defer r.endWait(&w)

	for word.Load() < target {
		i, who := r.step(&w, peer, why)
		if i == none {
			continue
		}
		r.catchUp()
		if word.Load() < target && !r.isVoid(i, who, why) {
			return r.interruptionError(i, who)
		}
	}
	return nil
}

// awaitCondition returns when a condition holds that peer brings about, or when the wait is
// interrupted. The condition takes precedence over an interruption: it is tested once more.
// (syncmodel: secondTest)
func (r *Member) awaitCondition(holds func() bool, peer int, why purpose) error {
	w := wait{wakes: r.budgets.woke}
	defer r.endWait(&w)

	for !holds() {
		i, who := r.step(&w, peer, why)
		if i == none {
			continue
		}
		r.catchUp()
		if !holds() && !r.isVoid(i, who, why) {
			return r.interruptionError(i, who)
		}
	}
	return nil
}

// catchUp brings the copies of other ranks' words up to date, where ranks share no memory.
func (r *Member) catchUp() {
	if r.group.remote != nil {
		r.group.remote.CatchUp()
	}
}

// isVoid reports whether a rank that seemed to have gone too early had done what it was waited
// for, as this rank has learnt since.
func (r *Member) isVoid(i interruption, who int, why purpose) bool {
	if r.group.remote == nil || i != peerLeft {
		return false
	}
	r.suspicion.hasArisen = true
	isVoid := r.checkPeer(who, why) == none
	r.suspicion.hasArisen = false
	return isVoid
}

// AwaitMessage is await for the counters of message streams and rounds.
func (r *Member) AwaitMessage(word *interleave.Uint64, target uint64, peer int) error {
	if r.afterWait == nil || word.Load() >= target {
		return r.await(word, target, peer, forMessage)
	}
	began := clock()
	err := r.await(word, target, peer, forMessage)
	r.afterWait(clock() - began)
	return err
}

// WakeWaiter wakes rank if it sleeps and waits for this rank. The caller must already have stored
// the word that rank may wait for.
func (r *Member) WakeWaiter(rank int) { r.budgets.woke = r.group.wakeWaiter(r.rank, rank) }

// WakeWaiters does that for all ranks.
func (r *Member) WakeWaiters() { r.budgets.woke = r.group.wakeWaiters(r.rank) }

// step is one step of a wait: a pause, a yield, an announcement or a sleep. The caller then
// tests the awaited word. (syncmodel: freshLook when it looked, flagThenTest when it announced,
// testAfterTake when it was woken)
func (r *Member) step(w *wait, peer int, why purpose) (i interruption, who int) {
	if w.woken { // and the awaited word was not there yet
		w.woken = false
		return r.look(w, peer, why)
	}

	switch r.budgets.current.spend(w, r.group.processes) {
	case paused:
		if w.pauses%lookEvery != 0 {
			return none, peer
		}
		if w.looked && r.group.words.events.Load() == w.events {
			return r.call.checkContext(), peer
		}
	case yielded:
		if w.looked && r.group.words.events.Load() == w.events {
			return r.call.checkContext(), peer
		}

	case announced:
		r.state.waitOn.Store(uint64(r.blocker(peer, why)) + 1)
		r.group.words.sleepers.Add(1)
		if r.beforeSleep != nil {
			r.beforeSleep(w.last - w.began)
		}
	case asleep:
		if on := uint64(r.blocker(peer, why)) + 1; r.group.remote != nil && r.state.waitOn.Load() != on {
			r.state.waitOn.Store(on)
		}
		r.Sleep()
		w.woken = true
		return none, peer // the caller tests the word first
	}
	return r.look(w, peer, why)
}

// look looks for interruptions, and notes the events up to which it has.
func (r *Member) look(w *wait, peer int, why purpose) (i interruption, who int) {
	w.looked = true
	w.events = r.group.words.events.Load()
	return r.checkAll(peer, why)
}

// blocker returns the rank that holds up what this one waits for peer to do.
func (r *Member) blocker(peer int, why purpose) int {
	if r.group.remote == nil || why != forEntry {
		return peer
	}
	return r.group.remote.Blocker(peer, r.call.seq)
}

func (r *Member) endWait(w *wait) {
	r.budgets.current.end(w)
	if w.lost && !w.crowded && r.budgets.current.pollTime > 0 && r.group.processes != nil {
		r.group.processes.LostCore(r.rank)
	}
	if w.parked {
		r.group.words.sleepers.Add(-1)
		if r.state.waitOn.Load()&gaveUp == 0 { // a timeout stays in the chain of waits until StepOut
			r.state.waitOn.Store(0)
		}
		r.suspicion.hasArisen = false
	}
}

// Sleep waits for a token, the end of the call's context or a tick of its timeout. The caller
// looks at the group's state before and after.
func (r *Member) Sleep() {
	r.startTicker()
	ctx := r.call.ctx
	if r.call.ctxDone == nil || r.isHome(ctx) {
		ctx = nil
	}
	woken := r.group.rest.Sleep(r.rank, ctx)
	r.suspicion.hasArisen = r.group.processes != nil && r.suspicion.arises(woken)
}

// SleepAgain is Sleep of a rank that was woken in vain. It shows that it sleeps, which costs a call
// that no timeout ends nothing.
func (r *Member) SleepAgain() {
	r.state.waitOn.Store(anyRank)
	r.Sleep()
	r.state.waitOn.Store(0)
}
