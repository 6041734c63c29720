package groupsync

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
)

// purpose is what a wait is for.
type purpose uint8

const (
	forEntry      purpose = iota // for all peers to enter the call
	forCompletion                // for all peers to complete it
	forRefusal                   // for all peers to have refused the calls before
	forMessage                   // for one peer to send or take a message
)

// interruption is what can end a wait before its time.
type interruption uint8

const (
	none         interruption = iota
	closed                    // this rank has left
	groupFailed               // the group has failed
	cancelled                 // the call's context has ended
	peerRefused               // the peer refused the call
	peerLeft                  // the peer has left the group
	peerFinished              // the peer ended the call and will send no more
	timeIsUp                  // the call's timeout has passed
)

// await returns when *word has reached target, which peer is to store, or the
// wait is interrupted. Rules secondTest and, for the words of turns, comeBeatsFail.
func (r *Member) await(word *atomic.Uint64, target uint64, peer int, why purpose) error {
	if word.Load() >= target {
		return nil
	}
	return r.awaitSlow(word, target, peer, why)
}

func (r *Member) awaitSlow(word *atomic.Uint64, target uint64, peer int, why purpose) error {
	var w wait
	defer r.endWait(&w)
	for word.Load() < target {
		if i, who := r.step(&w, peer, why); i != none {
			if word.Load() >= target {
				break // what was waited for beats what interrupted
			}
			return r.interrupted(i, who)
		}
	}
	return nil
}

// AwaitMessage is await for the counters of message streams.
func (r *Member) AwaitMessage(word *atomic.Uint64, target uint64, peer int) error {
	return r.await(word, target, peer, forMessage)
}

// step is one step of a wait: a pause, or a sleep until there may be news. After
// it the caller tests what it waits for. Rules freshLook (looked), flagThenTest (announced)
// and testAfterTake (woken).
func (r *Member) step(w *wait, peer int, why purpose) (i interruption, who int) {
	if w.woken { // and what it waits for was not there
		w.woken = false
		w.looked = true
		w.events = r.group.words.events.Load()
		return r.look(peer, why)
	}
	switch r.budget.spend(w, r.group.others) {
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
		r.state.waitOn.Store(uint64(peer) + 1)
		r.group.words.sleepers.Add(1)
	case asleep:
		r.Sleep()
		w.woken = true
		return none, peer // the test comes first
	}
	w.looked = true
	w.events = r.group.words.events.Load()
	return r.look(peer, why)
}

func (r *Member) endWait(w *wait) {
	r.budget.end(w)
	if w.parked {
		r.group.words.sleepers.Add(-1)
		r.state.waitOn.Store(0)
		r.suspicious = false
	}
}

// Sleep waits for a token, the call's context or a tick of its timeout. Callers
// look at the group's state before and after.
func (r *Member) Sleep() {
	r.armTicker()
	ctx := r.ctx
	if r.ctxDone == nil || r.home(ctx) {
		ctx = nil
	}
	woken := r.group.rest.Sleep(r.rank, ctx)
	r.suspicious = r.group.others != nil && r.suspicion.arises(woken)
}

// home reports whether ctx leaves tokens by itself when it ends: the first
// context that a rank sleeps under is registered once, since it usually is the
// job's and comes with every call; a select on another costs about as much as a
// small call.
func (r *Member) home(ctx context.Context) bool {
	if r.homeCtx == nil {
		if reflect.TypeOf(ctx).Kind() != reflect.Pointer {
			return false // values of other kinds may not even be comparable
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

// look reads everything that can interrupt a wait for peer, and returns who did. A wait for
// a message or a turn looks at that peer alone (rule turnsEnd).
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

// lookAtAll looks at all peers: whoever is missing, the wait is in vain. It loads
// nothing of theirs after an event that has brought nothing that concerns this
// call or one to come: nobody has left or has refused one. Rules looksAtAll, calmBefore and
// calmIsQuiet.
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

// lookAt reads what peer has done that ends a wait for it. Departures are loaded
// first: what a rank did before it left counts. And they are judged last: a rank
// that refuses a call and then leaves has refused it. Rules leftThenWord and
// refusedBeatsLeft.
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

// dead reports whether peer is a process that has ended, however that came.
func (r *Member) dead(peer int) bool {
	if r.group.others == nil || peer == r.rank {
		return false
	}
	_, dead := r.group.others.Dead(peer)
	return dead
}

// lookAround reads what ends any wait of this rank, whomever it waits for.
func (r *Member) lookAround() interruption {
	if r.closed.Load() {
		return closed
	}
	if r.Failed() {
		return groupFailed
	}
	return r.cancellation()
}

// Look returns the error of a wait for all others to enter the call, if there is
// anything that ends it.
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
	if on := r.state.waitOn.Load(); on != 0 {
		r.state.waitOn.Store(on | gaveUp)
	}
	e := &transport.TimeoutError{Missing: r.missing(), By: r.rank, Seq: r.seq, After: r.limit.After}
	if len(e.Missing) == 0 && peer >= 0 {
		e.Behind = []int{r.behind(peer)}
	}
	return e
}

// behind returns the rank that peer, for which this one waits in a call, waits for in the end.
func (r *Member) behind(peer int) int {
	return r.follow(peer, func(who int) uint64 { return r.group.states[who].waitOn.Load() &^ gaveUp },
		func(who int) bool { return isUp(&r.group.states[who].waitOn, r.group.others, who) })
}

// isUp reports whether a sleeper among processes, whose word says for whom it waits, neither
// sleeps nor has given up. All others that wait for each other are up for a moment at most.
func isUp(waitOn *atomic.Uint64, others Processes, sleeper int) bool {
	on := waitOn.Load()
	return others != nil && on != 0 && on&gaveUp == 0 && !others.Asleep(sleeper)
}

// follow goes from peer, and from each rank that waits, to the one it waits for, 1 + which
// on returns. Where that leads in a circle of processes, one may have been stopped that could
// do something for another in the circle, though not for the one it waits for: it stays up,
// which lies reports.
func (r *Member) follow(peer int, on func(who int) uint64, lies func(who int) bool) int {
	var circle []int
	for who := peer; who != r.rank && !slices.Contains(circle, who); {
		on := on(who)
		if on == 0 || on > uint64(r.Size()) || on == uint64(who)+1 { // of itself it wants a message
			return who
		}
		circle = append(circle, who)
		who = int(on) - 1
	}
	lying := slices.DeleteFunc(circle, func(who int) bool { return !lies(who) })
	for i := 0; i < getUpTimes && (len(lying) > 1 || len(lying) == 1 && i == 0); i++ {
		time.Sleep(getUpTime) // their own tickers may have woken them just now
		lying = slices.DeleteFunc(lying, func(who int) bool { return !lies(who) })
	}
	if len(lying) > 0 {
		return lying[0]
	}
	return peer
}

// getUpTime is what a process takes at most to run after it was woken, unless it is
// stopped.
const getUpTime = 20 * time.Millisecond

// getUpTimes is how often several are given that time: ranks whose time is up at the same
// moment are woken together, and get up one after the other where there are few cores.
const getUpTimes = 5

// lost returns the error of a wait for a peer that has left or ended.
func (r *Member) lost(peer int) *transport.PeerLostError {
	e := &transport.PeerLostError{Rank: peer}
	if r.group.others != nil {
		e.PID, _ = r.group.others.Dead(peer)
	}
	return e
}

// armTicker makes sure that a ticker runs for the call's timeout; it keeps
// running across calls.
func (r *Member) armTicker() {
	after := r.limit.After
	if after <= 0 || r.tickerFor == after {
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
	r.tickStart = r.ticks.Load() // what an earlier ticker has counted was another timeout's
	r.ticker = startTicker(after, func() {
		r.ticks.Add(1)
		r.group.Wake(r.rank)
	})
}

// overdue reports whether the call's time is up, and warns once when half of it
// is. The ticks are those of the call's own timeout: until the rank has slept in this call
// the ticker may be that of an earlier one.
func (r *Member) overdue() interruption {
	if r.limit.After <= 0 || r.tickerFor != r.limit.After {
		return none
	}
	n := r.ticks.Load() - r.tickStart
	if n >= warnTick && !r.warned && r.limit.Warn != nil {
		r.warned = true
		r.limit.Warn(r.seq, r.missing())
	}
	if n < timeoutTick {
		return none
	}
	return timeIsUp
}

// missing returns the ranks that have not entered the current call.
func (r *Member) missing() []int {
	return r.which(func(p *State) bool { return !p.arrived(r.seq) })
}

// refused returns who has refused the current call, and why, and who has not come to it.
func (r *Member) refused() *transport.RefusedError {
	e := &transport.RefusedError{Seq: r.seq}
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

func (r *Member) which(is func(*State) bool) (ranks []int) {
	for rank, p := range r.group.states {
		if rank != r.rank && is(p) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
