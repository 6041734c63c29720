package p2p

import (
	"runtime/debug"

	"github.com/goccl/goccl/internal/interleave"
)

// progress makes progress on all transfers until send and recv have ended, or, if both are
// nil, until no transfer is pending. The caller has set e.running; goOn resets it.
func (e *Engine) progress(send, recv *Transfer) {
	for !e.tryProgress(send, recv) {
	}
}

// tryProgress is progress, but returns false if shared memory has vanished. In that case the
// group has failed, and the next tryProgress ends all transfers.
func (e *Engine) tryProgress(send, recv *Transfer) (done bool) {
	if e.guarded {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if v := recover(); v != nil {
				e.failBy(v)
			}
		}()
	}

	background := send == nil && recv == nil
	for e.goOn(send, recv) {
		before := e.moves
		e.link.Rest(e.tryMove, background)
		if e.moves == before || e.moves%movesPerCheck == 0 {
			e.check()
		}
	}
	return true
}

// movesPerCheck is the number of moves after which the engine checks deadlines even though every
// Rest has moved something.
const movesPerCheck = 256

// goOn reports whether this goroutine has to go on making progress for send and recv. Otherwise
// it starts a background goroutine if transfers are pending, and resets e.running if none is.
func (e *Engine) goOn(send, recv *Transfer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.suspect {
		e.suspect = false
		e.checkAll()
	}

	background, pending := send == nil && recv == nil, e.pending()
	switch {
	case !recv.isOver():
		e.waitFor(max(recv.Peer, -1))
		return true
	case !send.isOver():
		e.waitFor(send.Peer)
		return true
	// The caller has what it wanted. Others may not.
	case background && pending:
		e.waitFor(e.firstPeer())
		return true
	case pending:
		interleave.Go(func() { e.progress(nil, nil) })
		return false
	}
	if !e.timedOut { // after a timeout, other ranks see until the next transfer for whom it waited
		e.waitFor(-1)
	}
	e.running = false
	if e.stopped {
		e.group.Release()
	}
	return false
}

// waitFor announces the rank that this rank waits for from now on; -1: none in particular.
func (e *Engine) waitFor(peer int) {
	e.timedOut = false
	e.link.WaitFor(peer)
}

// endTimedOutWait withdraws the announcement of a transfer that timed out: WaitFor still names
// its peer.
func (e *Engine) endTimedOutWait() {
	e.timedOut = false
	if e.running {
		return // the goroutine that makes progress announces its next wait
	}
	if e.guarded {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { e.suspect = e.suspect || recover() != nil }() // shared memory has vanished
	}
	e.link.WaitFor(-1)
}

// firstPeer returns the peer of the oldest posted receive, or if none is posted, of a pending
// send; -1 if that receive accepts any source.
func (e *Engine) firstPeer() int {
	if len(e.posted) > 0 {
		return max(e.posted[0].Peer, -1)
	}
	for to, queue := range e.sends {
		if len(queue) > 0 {
			return to
		}
	}
	return -1
}

// move sends and receives what is possible without waiting, and reports whether it moved
// anything.
func (e *Engine) move() (moved bool) {
	for to, queue := range e.sends {
		if len(queue) > 0 && to != e.rank && e.send(queue[0]) {
			moved = true
		}
	}
	if e.failed != nil {
		return moved
	}
	for i := 0; i < len(e.posted); i++ {
		before := len(e.posted)
		moved = e.receiveFor(e.posted[i]) || moved
		if len(e.posted) != before {
			i = -1 // the queue has changed: start again
		}
	}
	for from := range e.incoming {
		if e.incoming[from].recv != nil {
			moved = e.receive(from) || moved
		}
	}
	if moved {
		e.moves++
	}
	return moved
}

// receiveFor receives from the peer of a posted receive. If that accepts any source, it polls all
// ranks in turn, beginning after the one polled last, until the posted queue has changed.
func (e *Engine) receiveFor(t *Transfer) (moved bool) {
	if t.Peer != AnySource {
		return e.receive(t.Peer)
	}
	before := len(e.posted)
	for i := 0; i < len(e.incoming) && len(e.posted) == before; i++ {
		e.lastPolled = (e.lastPolled + 1) % len(e.incoming)
		moved = e.receive(e.lastPolled) || moved
	}
	return moved
}
