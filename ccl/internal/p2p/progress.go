package p2p

import "runtime/debug"

// progress makes progress on all transfers until send and recv have ended, or, if both are
// nil, until none is left. Before, e.running was set for the caller.
func (e *Engine) progress(send, recv *Transfer) {
	for !e.tryProgress(send, recv) {
	}
}

// tryProgress is progress, but returns false if shared memory has vanished. Then the group
// has failed, and the next attempt ends all transfers.
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

// movesPerCheck is after how many moves in succession the engine checks deadlines.
const movesPerCheck = 256

// goOn reports whether the goroutine that makes progress has to go on. If not, another may.
func (e *Engine) goOn(send, recv *Transfer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.suspect {
		e.suspect = false
		e.checkAll()
	}
	background, left := send == nil && recv == nil, e.pending()
	switch {
	case !recv.isOver():
		e.waitFor(max(recv.Peer, -1))
		return true
	case !send.isOver():
		e.waitFor(send.Peer)
		return true
	case background && left:
		e.waitFor(e.firstPeer())
		return true
	case left:
		go e.progress(nil, nil)
		return false
	}
	if !e.timedOut { // otherwise other ranks see for whom it waited, until its next transfer
		e.waitFor(-1)
	}
	e.running = false
	if e.stopped {
		e.group.Release()
	}
	return false
}

// waitFor announces for which rank this rank waits from now on.
func (e *Engine) waitFor(peer int) {
	e.timedOut = false
	e.link.WaitFor(peer)
}

// endTimedOutWait withdraws the announcement that a transfer which timed out left behind.
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

// firstPeer returns the other rank of the first transfer, receives first; -1 if it is not
// known.
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

// move moves what can be moved now, and reports whether anything was.
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
			i = -1 // the queue has changed: from the beginning
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

// receiveFor receives from the ranks that a posted receive accepts, in turns if these are
// all, until the posted queue has changed.
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
