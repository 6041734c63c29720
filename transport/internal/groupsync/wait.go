package groupsync

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
)

// purpose is the event that a wait is for.
type purpose uint8

const (
	forEntry      purpose = iota // for all peers to enter the call
	forCompletion                // for all peers to complete it
	forRefusal                   // for all peers to reject the calls before
	forMessage                   // for one peer to send or take a message
)

// interruption is an event that can end a wait early.
type interruption uint8

const (
	none         interruption = iota
	closed                    // this rank has left
	groupFailed               // the group has failed
	cancelled                 // the call's context has ended
	peerRefused               // the peer has rejected the call
	peerLeft                  // the peer has left the group
	peerFinished              // the peer has ended the call and will send no more
	timedOut                  // the call's timeout has passed
)

// await returns when *word has reached target, which peer stores, or when the wait is
// interrupted. Rules secondTest and, for the rounds of staging, arrivalBeatsFail.
func (r *Member) await(word *atomic.Uint64, target uint64, peer int, why purpose) error {
	if word.Load() >= target {
		return nil
	}
	return r.awaitSlow(word, target, peer, why)
}

func (r *Member) awaitSlow(word *atomic.Uint64, target uint64, peer int, why purpose) error {
	w := wait{wakes: r.woke}
	defer r.endWait(&w)
	for word.Load() < target {
		if i, who := r.step(&w, peer, why); i != none {
			r.settled()
			if word.Load() >= target {
				break // the awaited word takes precedence over the interruption
			}
			if r.isVoid(i, who, why) {
				continue
			}
			return r.interrupted(i, who)
		}
	}
	return nil
}

// settled brings the copies of other ranks' words up to date, where ranks share no memory.
func (r *Member) settled() {
	if r.group.remote != nil {
		r.group.remote.Settle()
	}
}

// isVoid reports whether a rank that seemed to have gone too early had done what it was waited for, as this rank has learnt since.
func (r *Member) isVoid(i interruption, who int, why purpose) bool {
	if r.group.remote == nil || i != peerLeft {
		return false
	}
	r.suspicious = true
	void := r.lookAt(who, why) == none
	r.suspicious = false
	return void
}

// AwaitMessage is await for the counters of message streams and rounds.
func (r *Member) AwaitMessage(word *atomic.Uint64, target uint64, peer int) error {
	return r.await(word, target, peer, forMessage)
}

// WakeWaiter wakes rank if it sleeps and waits for this rank. The caller must already have stored
// the word that rank may wait for.
func (r *Member) WakeWaiter(rank int) { r.woke = r.group.wakeWaiter(r.rank, rank) }

// WakeWaiters does that for all ranks.
func (r *Member) WakeWaiters() { r.woke = r.group.wakeWaiters(r.rank) }

// step is one step of a wait: a pause, a yield, an announcement or a sleep. The caller then
// tests the awaited word. Rules freshLook (looked), flagThenTest (announced) and testAfterTake
// (woken).
func (r *Member) step(w *wait, peer int, why purpose) (i interruption, who int) {
	if w.woken { // and the awaited word was still behind
		w.woken = false
		w.looked = true
		w.events = r.group.words.events.Load()
		return r.look(peer, why)
	}
	switch r.budget.spend(w, r.group.processes) {
	case paused:
		if w.pauses%lookEvery != 0 {
			return none, peer
		}
		if w.looked && r.group.words.events.Load() == w.events {
			return r.cancellation(), peer
		}
	case yielded:
		if w.looked && r.group.words.events.Load() == w.events {
			return r.cancellation(), peer
		}
	case announced:
		r.state.waitOn.Store(uint64(r.via(peer, why)) + 1)
		r.group.words.sleepers.Add(1)
	case asleep:
		if on := uint64(r.via(peer, why)) + 1; r.group.remote != nil && r.state.waitOn.Load() != on {
			r.state.waitOn.Store(on)
		}
		r.Sleep()
		w.woken = true
		return none, peer // the caller tests the word first
	}
	w.looked = true
	w.events = r.group.words.events.Load()
	return r.look(peer, why)
}

// via returns the rank that holds up what this one waits for peer to do.
func (r *Member) via(peer int, why purpose) int {
	if r.group.remote == nil || why != forEntry {
		return peer
	}
	return r.group.remote.Via(peer, r.seq)
}

func (r *Member) endWait(w *wait) {
	r.budget.end(w)
	if w.lost && !w.crowd && r.budget.pollTime > 0 && r.group.processes != nil {
		r.group.processes.LostCore(r.rank)
	}
	if w.parked {
		r.group.words.sleepers.Add(-1)
		if r.state.waitOn.Load()&gaveUp == 0 { // a timeout stays in the chain of waits until StepOut
			r.state.waitOn.Store(0)
		}
		r.suspicious = false
	}
}

// Sleep waits for a token, the end of the call's context or a tick of its timeout. The caller
// looks at the group's state before and after.
func (r *Member) Sleep() {
	r.armTicker()
	ctx := r.ctx
	if r.ctxDone == nil || r.home(ctx) {
		ctx = nil
	}
	woken := r.group.rest.Sleep(r.rank, ctx)
	r.suspicious = r.group.processes != nil && r.suspicion.arises(woken)
}

// home reports whether ctx leaves a token when it ends. The first context under which a rank
// sleeps is registered for that once, because it usually is the job's and comes with each call.
// A select on any other context costs about as much as a small call.
func (r *Member) home(ctx context.Context) bool {
	if r.homeCtx == nil {
		if reflect.TypeOf(ctx).Kind() != reflect.Pointer {
			return false // values of other kinds may not be comparable
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed.Load() {
			return false
		}
		r.homeCtx = ctx
		r.homeStop = context.AfterFunc(ctx, func() { r.group.Wake(r.rank) })
	}
	return r.homeCtx == ctx
}

// cancellation reports whether the call's context has ended.
func (r *Member) cancellation() interruption {
	if r.ctxDone == nil {
		return none
	}
	select {
	case <-r.ctxDone:
		return cancelled
	default:
		return none
	}
}

// look checks everything that can interrupt a wait for peer, and returns the rank that did. A
// wait for a message or a round looks only at that peer (rule roundsEnd).
func (r *Member) look(peer int, why purpose) (i interruption, who int) {
	if i := r.lookAround(); i != none {
		return i, peer
	}
	if why == forMessage {
		i, who = r.lookAt(peer, why), peer
	} else {
		i, who = r.lookAtAll(why)
	}
	r.suspicious = false
	if i != none {
		return i, who
	}
	return r.overdue(), peer
}

// lookAtAll looks at all peers, because any missing peer makes the wait pointless. It skips
// them if no event has occurred since a look that found calm: no peer had left, or rejected
// this call or a later one. Rules looksAtAll, calmBefore and calmIsQuiet.
func (r *Member) lookAtAll(why purpose) (i interruption, who int) {
	events := r.group.words.events.Load()
	if events == r.calm && !r.suspicious {
		return none, 0
	}
	calm := true
	for who, p := range r.group.states {
		if i := r.lookAt(who, why); i != none {
			return i, who
		}
		calm = calm && p.left.Load() == 0 && p.refusedLast.Load() < r.seq
	}
	if calm {
		r.calm = events
	}
	return none, 0
}

// lookAt checks whether peer has ended a wait for it. It loads left first, because what a rank
// did before it left counts. It judges left last, because a rank that rejects a call and then
// leaves has rejected it. Rules leftThenWord and refusedBeatsLeft.
func (r *Member) lookAt(peer int, why purpose) interruption {
	if peer == r.rank {
		return none
	}
	p := r.group.states[peer]
	left := p.left.Load() != 0 || r.suspicious && r.dead(peer)
	switch why {
	case forEntry:
		if p.arrived(r.seq) {
			return none
		}
		if p.refused(r.seq) {
			return peerRefused
		}
	case forCompletion:
		if p.done.Load() >= r.seq {
			return none
		}
	case forRefusal:
		if p.refused(r.seq - 1) {
			return none
		}
	case forMessage:
		if p.done.Load() >= r.seq {
			return peerFinished
		}
	}
	if left {
		return peerLeft
	}
	return none
}

// dead reports whether peer is a process that has ended, for whatever reason.
func (r *Member) dead(peer int) bool {
	if r.group.processes == nil || peer == r.rank {
		return false
	}
	_, dead := r.group.processes.Dead(peer)
	return dead
}

// lookAround checks what ends any wait of this rank, whatever peer it waits for.
func (r *Member) lookAround() interruption {
	if r.closed.Load() {
		return closed
	}
	if r.Failed() {
		return groupFailed
	}
	return r.cancellation()
}

// Look returns the error that ends a wait for all peers to enter the call, or nil if nothing
// interrupts it.
func (r *Member) Look() error {
	if i, who := r.look(-1, forEntry); i != none {
		return r.interrupted(i, who)
	}
	return nil
}

// interrupted returns the error of a wait for peer that i has ended.
func (r *Member) interrupted(i interruption, peer int) error {
	switch i {
	case closed:
		return transport.ErrClosed
	case groupFailed:
		return transport.ErrFailed
	case cancelled:
		return transport.ContextError(r.ctx)
	case peerRefused:
		return r.refused()
	case peerLeft:
		return r.lost(peer)
	case peerFinished:
		return &transport.ProtocolError{Peer: peer,
			Text: "it ended the call while this rank waits to exchange a message with it"}
	}
	r.warn() // unless it has
	if on := r.state.waitOn.Load(); on != 0 {
		r.state.waitOn.Store(on | gaveUp)
	}
	e := &transport.TimeoutError{Missing: r.missing(), By: r.rank, Seq: r.seq, After: r.limit.After}
	if len(e.Missing) == 0 && peer >= 0 {
		e.Behind = []int{r.behind(peer)}
	}
	return e
}

// behind returns the rank at the end of the chain of waits from peer, for which this rank waits
// in a call.
func (r *Member) behind(peer int) int {
	return r.follow(peer, func(who int) uint64 { return r.group.states[who].waitOn.Load() &^ gaveUp },
		func(who int) bool { return isAwake(&r.group.states[who].waitOn, r.group.processes, who) })
}

// isAwake reports whether a process that waitOn announces as a waiter neither sleeps nor has
// given up. Unless it is stopped, such a process is awake for a moment only.
func isAwake(waitOn *atomic.Uint64, processes Processes, sleeper int) bool {
	on := waitOn.Load()
	return processes != nil && on != 0 && on&gaveUp == 0 && !processes.Asleep(sleeper)
}

// follow returns the end of the chain of waits from peer. on returns 1 + the rank that a rank
// waits for, or 0. The chain may run in a circle of processes. A member of the circle that was
// stopped could perhaps serve another member, though not the one that it waits for; it stays
// awake, and follow returns it.
func (r *Member) follow(peer int, on func(who int) uint64, awake func(who int) bool) int {
	var circle []int
	for who := peer; who != r.rank && !slices.Contains(circle, who); {
		on := on(who)
		if on == 0 || on > uint64(r.Size()) || on == uint64(who)+1 { // it waits for its own message
			return who
		}
		circle = append(circle, who)
		who = int(on) - 1
	}
	stopped := slices.DeleteFunc(circle, func(who int) bool { return !awake(who) })
	for i := 0; i < wakeTries && (len(stopped) > 1 || len(stopped) == 1 && i == 0); i++ {
		time.Sleep(wakeTime) // their own tickers may have woken them just now
		stopped = slices.DeleteFunc(stopped, func(who int) bool { return !awake(who) })
	}
	if len(stopped) > 0 {
		return stopped[0]
	}
	return peer
}

// wakeTime is the longest time that a process takes to run after it was woken, unless it is
// stopped.
const wakeTime = 20 * time.Millisecond

// wakeTries bounds how often follow waits for wakeTime. Ranks that time out at the same moment
// are woken together, but run one after the other if they outnumber the cores.
const wakeTries = 5

// lost returns the error of a wait for a peer that has left or died.
func (r *Member) lost(peer int) *transport.PeerLostError {
	e := &transport.PeerLostError{Rank: peer}
	if r.group.processes != nil {
		e.PID, _ = r.group.processes.Dead(peer)
	}
	return e
}

// armTicker makes sure that a ticker runs for the call's timeout. The ticker keeps running
// across calls.
func (r *Member) armTicker() {
	after := r.limit.After.Abs()
	if after == 0 || r.tickerFor == after {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ticker != nil {
		r.ticker.stop()
	}
	if r.closed.Load() {
		return
	}
	r.tickerFor = after
	r.tickStart = r.ticks.Load() // earlier ticks belong to another timeout
	r.ticker = startTicker(after, func() {
		r.ticks.Add(1)
		r.group.Wake(r.rank)
	})
}

// overdue reports whether the call has timed out, and warns once after half of its timeout. Only a
// ticker for this timeout counts: until the rank has slept in this call, the ticker may belong to
// an earlier call. A call with a negative timeout never has, and warns again each time that as long
// has passed.
func (r *Member) overdue() interruption {
	if r.limit.After == 0 || r.tickerFor != r.limit.After.Abs() {
		return none
	}
	n := r.ticks.Load() - r.tickStart
	if n >= warnTick && r.knowsMissing() {
		r.warn()
	}
	if n < timeoutTick {
		return none
	}
	if r.limit.After < 0 {
		r.tickStart += ticksPerTimeout
		r.warned, r.asked = false, nil
		return none
	}
	return timedOut
}

// warn warns, once in a call.
func (r *Member) warn() {
	if !r.warned && r.limit.Warn != nil {
		r.warned = true
		r.limit.Warn(r.seq, r.missing())
	}
}

// knowsMissing reports whether missing is right. Where ranks share no memory, this one asks the others first, and does not wait for that.
func (r *Member) knowsMissing() bool {
	if r.group.remote == nil || r.warned || r.limit.Warn == nil {
		return true
	}
	if r.asked == nil {
		r.asked = r.group.remote.Ask()
	}
	return r.asked()
}

// missing returns the ranks that have not entered the current call.
func (r *Member) missing() (ranks []int) {
	for rank, p := range r.group.states {
		if rank != r.rank && !p.arrived(r.seq) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// refused returns an error with the ranks that have rejected the current call, their reasons,
// and the ranks that have not come to it.
func (r *Member) refused() *transport.RejectedError {
	e := &transport.RejectedError{Seq: r.seq}
	for rank, p := range r.group.states {
		switch {
		case rank == r.rank || p.arrived(r.seq):
		case p.refused(r.seq):
			e.Ranks = append(e.Ranks, rank)
			e.Why = append(e.Why, r.group.causes.LoadReason(rank, r.seq))
		default:
			e.Missing = append(e.Missing, rank)
		}
	}
	return e
}
