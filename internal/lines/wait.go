package lines

import (
	"context"
	"sync/atomic"

	"github.com/goccl/goccl/internal/spin"
	"github.com/goccl/goccl/transport"
)

// A wait polls for as many pauses as its rank's budget allows before it parks.
// The budget is halved after a park and doubled after a success, so that ranks
// that share a core learn to park at once, and full again now and then, so that
// they notice when they no longer do.
const (
	maxSpin       = 2000
	minSpin       = 32
	fullSpinParks = 64 // every so many parks the budget is full again
	lookEvery     = 64 // pauses between two looks at what may interrupt a wait
)

// purpose is what a wait is for; it decides which of a peer's words can end it.
type purpose uint8

const (
	forEntry    purpose = iota // for a peer to enter the call
	forMessage                 // for a peer to send or take a message
	forProgress                // for a peer to get to a later point of the call
)

// wait is the state of one wait; its zero value begins one.
type wait struct {
	pauses int
	looked bool
	parked bool
	events uint64 // as of the last look
}

// await returns when *word has reached target, which peer is to store, or the
// wait is interrupted.
func (r *Member) await(word *atomic.Uint64, target uint64, peer int, why purpose) error {
	if word.Load() >= target {
		return nil
	}
	return r.awaitSlow(word, target, peer, why)
}

func (r *Member) awaitSlow(word *atomic.Uint64, target uint64, peer int, why purpose) error {
	var w wait
	for word.Load() < target {
		if err := r.step(&w, peer, why); err != nil {
			if word.Load() >= target {
				break // what was waited for beats what interrupted
			}
			r.endWait(&w)
			return err
		}
	}
	r.endWait(&w)
	return nil
}

// AwaitMessage is await for the counters of message streams.
func (r *Member) AwaitMessage(word *atomic.Uint64, target uint64, peer int) error {
	return r.await(word, target, peer, forMessage)
}

// AwaitProgress is await for words that a peer stores inside a call.
func (r *Member) AwaitProgress(word *atomic.Uint64, target uint64, peer int) error {
	return r.await(word, target, peer, forProgress)
}

// step is one step of a wait: a pause, or a sleep until there may be news. After
// it the caller tests what it waits for.
func (r *Member) step(w *wait, peer int, why purpose) error {
	if w.pauses < r.spin {
		w.pauses++
		spin.Pause()
		if w.pauses%lookEvery != 0 {
			return nil
		}
		if err := r.cancelled(); err != nil {
			return err
		}
		if w.looked && r.group.words.events.Load() == w.events {
			return nil
		}
		return r.look(w, peer, why)
	}
	if !w.parked {
		w.parked = true
		r.park(peer)
		return r.look(w, peer, why)
	}
	r.Sleep()
	return r.look(w, peer, why)
}

// park announces that this rank is about to sleep for peer.
func (r *Member) park(peer int) {
	r.state.waitOn.Store(uint64(peer) + 1)
	r.group.words.sleepers.Add(1)
	r.parks++
	r.spin = min(max(r.spin/2, minSpin), r.maxSpin)
	if r.parks%fullSpinParks == 0 {
		r.spin = r.maxSpin
	}
}

func (r *Member) endWait(w *wait) {
	if !w.parked {
		r.spin = min(2*r.spin, r.maxSpin)
		return
	}
	r.group.words.sleepers.Add(-1)
	r.state.waitOn.Store(0)
}

// Sleep waits for a token, the call's context or a tick of its timeout. Callers
// look at the group's state before and after.
func (r *Member) Sleep() {
	r.armTicker()
	token := r.group.tokens[r.rank]
	if r.ctxDone == nil || r.home(r.ctx) {
		<-token
		return
	}
	select {
	case <-token:
	case <-r.ctxDone:
	}
}

// home reports whether ctx leaves tokens by itself when it ends: the first
// context that a rank sleeps under is registered once, since it usually is the
// job's and comes with every call; a select on another costs about as much as a
// small call.
func (r *Member) home(ctx context.Context) bool {
	if r.homeCtx == nil {
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

// cancelled returns the error of the call's context if that has ended.
func (r *Member) cancelled() error {
	if r.ctxDone == nil {
		return nil
	}
	select {
	case <-r.ctxDone:
		return r.ctx.Err()
	default:
		return nil
	}
}

// look reads everything that can interrupt a wait for peer. A rank that refuses a
// call and then leaves has refused it: departures are loaded first and judged
// last.
func (r *Member) look(w *wait, peer int, why purpose) error {
	w.looked = true
	w.events = r.group.words.events.Load()
	if err := r.interrupted(); err != nil {
		return err
	}
	p := r.group.states[peer]
	left := p.left.Load() != 0
	switch {
	case why == forEntry && p.refused(r.seq):
		return r.refusedError()
	case left:
		return &transport.PeerLostError{Rank: peer}
	case why == forMessage && p.done.Load() >= r.seq:
		return &transport.ProtocolError{Peer: peer,
			Text: "it ended the call while this rank waits to exchange a message with it"}
	}
	return r.timedOut(peer)
}

// interrupted reports what ends any wait of this rank, whomever it waits for.
func (r *Member) interrupted() error {
	if r.closed.Load() {
		return transport.ErrClosed
	}
	if r.Failed() {
		return transport.ErrFailed
	}
	return r.cancelled()
}

// Look is look for a rank that waits for all others at once to enter the call.
func (r *Member) Look() error {
	if err := r.interrupted(); err != nil {
		return err
	}
	for peer, p := range r.group.states {
		if peer == r.rank || p.arrived(r.seq) {
			continue
		}
		left := p.left.Load() != 0
		if p.refused(r.seq) {
			return r.refusedError()
		}
		if left {
			return &transport.PeerLostError{Rank: peer}
		}
	}
	return r.timedOut(-1)
}

func (r *Member) refusedError() error {
	var who []int
	for peer, p := range r.group.states {
		if p.refused(r.seq) {
			who = append(who, peer)
		}
	}
	return &transport.RefusedError{Ranks: who, Seq: r.seq}
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
	r.ticker = startTicker(after, func() {
		r.ticks.Add(1)
		r.group.Wake(r.rank)
	})
}

// timedOut returns a *TimeoutError if the call's time is over, and warns once
// when half of it is.
func (r *Member) timedOut(peer int) error {
	if r.limit.After <= 0 {
		return nil
	}
	n := r.ticks.Load() - r.tickStart
	if n >= warnTick && !r.warned && r.limit.Warn != nil {
		r.warned = true
		r.limit.Warn(r.seq, r.Missing())
	}
	if n < timeoutTick {
		return nil
	}
	e := &transport.TimeoutError{Missing: r.Missing(), Seq: r.seq, After: r.limit.After}
	if len(e.Missing) == 0 && peer >= 0 {
		e.Behind = []int{peer}
	}
	return e
}

// Missing returns the ranks that have not entered the current call.
func (r *Member) Missing() []int {
	var who []int
	for peer, p := range r.group.states {
		if peer != r.rank && !p.arrived(r.seq) {
			who = append(who, peer)
		}
	}
	return who
}
