package transporttest

import (
	"errors"
	"slices"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// mail holds the messages that this rank still has to send to peer, or still expects from peer,
// in order.
type mail struct {
	peer     int
	messages []transport.Message
	ended    func() // called before Take of the last part of a message; may be nil
}

// dropBytes drops n bytes from the first message, and reports whether that was its end.
func (m *mail) dropBytes(n int) (ended bool) {
	first := &m.messages[0]
	if first.Bytes = first.Bytes[n:]; len(first.Bytes) > 0 {
		return false
	}
	m.messages = m.messages[1:]
	return true
}

// sendMessages puts messages of m until the stream has no room, and reports whether it put
// anything.
func (r *rank) sendMessages(m *mail) (moved bool) {
	for ; len(m.messages) > 0; moved = true {
		n, ok, err := r.P2P().TryPut(m.peer, &m.messages[0])
		failIfIn(err, "P2P: TryPut to rank %d", m.peer)
		if unsent := len(m.messages[0].Bytes); n > unsent || n < 0 || ok && n < min(1, unsent) || !ok && n != 0 {
			fail("TryPut of %d bytes to rank %d took %d, ok %v", unsent, m.peer, n, ok)
		}
		if !ok {
			break
		}
		m.dropBytes(n)
	}
	return moved
}

// putFirst puts a message into an empty stream.
func (r *rank) putFirst(to int, m transport.Message) {
	if !r.sendMessages(&mail{to, []transport.Message{m}, nil}) {
		fail("TryPut of the first message took nothing")
	}
}

// fetchMessages checks and takes the messages of m that have arrived, and reports whether it took
// anything. It calls TryNext twice for each part: both calls have to return the same view.
func (r *rank) fetchMessages(m *mail) (moved bool) {
	for ; len(m.messages) > 0; moved = true {
		n := 0
		for look := range 2 {
			view, ok, err := r.P2P().TryNext(m.peer)
			failIfIn(err, "P2P: TryNext from rank %d", m.peer)
			switch {
			case !ok && look == 0:
				return moved
			case !ok:
				fail("TryNext from rank %d: what it returned before is gone", m.peer)
			}

			r.checkMessage(m.peer, view, m.messages[0])
			n = len(view.Bytes)
		}

		if m.dropBytes(n) && m.ended != nil {
			m.ended()
		}
		r.P2P().Take(m.peer)
	}
	return moved
}

// deliver sends out and fetches in, until the receivers have taken all of out and this rank all
// of in.
func (r *rank) deliver(out, in []*mail, noSpin bool) {
	for {
		moved := false
		for _, m := range out {
			moved = r.sendMessages(m) || moved
		}

		for _, m := range in {
			moved = r.fetchMessages(m) || moved
		}
		if r.isDelivered(out, in) {
			return
		}
		r.checkFailed()
		if !moved {
			r.P2P().Rest(func() bool { return r.canMove(out, in) || r.isDelivered(out, in) }, noSpin)
		}
	}
}

// checkFailed ends the script if the group has failed.
func (r *rank) checkFailed() {
	if r.Failed() {
		failIf(transport.ErrFailed)
	}
}

// sendAround sends messages of these lengths to the next rank, and receives such messages from the
// previous one.
func (r *rank) sendAround(lengths []int, noSpin bool) {
	next, previous := (r.number+1)%r.size, (r.number+r.size-1)%r.size
	out, in := &mail{next, newMessages(r.number, next, lengths), nil}, &mail{previous, newMessages(previous, r.number, lengths), nil}
	r.deliver([]*mail{out}, []*mail{in}, noSpin)
}

// isDelivered reports whether the receivers have taken all of out, and this rank all of in.
func (r *rank) isDelivered(out, in []*mail) bool {
	pending := func(m *mail) bool { return len(m.messages) > 0 }
	undrained := func(m *mail) bool { return !r.P2P().TryDrained(m.peer) }
	return !slices.ContainsFunc(out, pending) && !slices.ContainsFunc(in, pending) && !slices.ContainsFunc(out, undrained)
}

// canMove reports whether deliver can send or receive something. It counts a stream as free to
// send only once the receiver has taken everything before.
func (r *rank) canMove(out, in []*mail) bool {
	return slices.ContainsFunc(out, func(m *mail) bool { return len(m.messages) > 0 && r.P2P().TryDrained(m.peer) }) ||
		slices.ContainsFunc(in, func(m *mail) bool { return len(m.messages) > 0 && r.hasArrived(m.peer) })
}

// hasArrived reports whether TryNext returns a message from a rank, or an error.
func (r *rank) hasArrived(from int) bool {
	_, ok, err := r.P2P().TryNext(from)
	return ok || err != nil
}

// newMessages returns messages from one rank to another, of these lengths.
func newMessages(from, to int, lengths []int) (all []transport.Message) {
	for i, length := range lengths {
		all = append(all, newMessage(uint64(i), from, to, length, 7))
	}
	return all
}

// p2pOrder sends messages of all sizes between all pairs of ranks at once; they have to arrive
// whole and in order.
func p2pOrder(h *harness, n int) {
	h.runWithSizes(func(r *rank, sizes []int) {
		for i := range 4 {
			var out, in []*mail
			for shift := 1; shift < n; shift++ {
				to, from := (r.number+shift)%n, (r.number+n-shift)%n
				out = append(out, &mail{to, newMessages(r.number, to, sizes), nil})
				in = append(in, &mail{from, newMessages(from, r.number, sizes), nil})
			}
			r.pause()
			r.deliver(out, in, (i+r.number)%2 == 0)
		}
	})
}

// p2pBeside has a second goroutine of each rank use the P2P while the first makes calls that
// exchange messages between the same ranks.
func p2pBeside(h *harness, n int) {
	h.run(func(r *rank) {
		next, previous := (r.number+1)%n, (r.number+n-1)%n
		var other error
		var beside interleave.WaitGroup
		beside.Go(func() {
			other = r.runOrFail(func() {
				for i := range 20 {
					r.sendAround([]int{0, 1, 40, 300}, i%2 == 0)
				}
			})
		})

		err := catchFailure(func() {
			for i := range 60 {
				r.messageCall(func(seq uint64) {
					r.exchange(next, newMessage(seq, r.number, next, 40*i, i), previous, newMessage(seq, previous, r.number, 40*i, i))
					r.drainTo(next)
				})
			}
		})

		if beside.Wait(); err == nil || other != nil && isConsequence(err) {
			failIfIn(other, "P2P beside calls")
		}
		failIf(err)
	})
}

// p2pDrain checks that TryDrained returns true only after the receiver has taken the message, and
// that the sender then sees what the receiver wrote before.
func p2pDrain(h *harness, n int) {
	// Not atomic: the race detector reports it unless TryDrained orders it.
	taken := 0
	buffer := make([]byte, 300)
	h.run(func(r *rank) {
		for i := range 200 {
			m := newMessage(uint64(i), 0, n-1, len(buffer), 0)
			switch r.number {
			case 0:
				m.Bytes = buffer[:copy(buffer, m.Bytes)]
				r.deliver([]*mail{{n - 1, []transport.Message{m}, nil}}, nil, i%2 == 0)
				if taken != i+1 {
					fail("TryDrained is true before message %d was taken", i)
				}

				poison(buffer)
			case n - 1:
				r.pause()
				r.deliver(nil, []*mail{{0, []transport.Message{m}, func() { taken = i + 1 }}}, i%3 == 0)
			}
		}
	})
}

// p2pWake calls Wake from another goroutine of each rank, before Rest or during it.
func p2pWake(h *harness, n int) {
	h.run(func(r *rank) {
		const wakes = 300
		wake, end := make(chan struct{}, wakes), make(chan struct{})
		defer close(end)
		interleave.Go(func() {
			for interleave.First(wake, end) == 0 {
				r.P2P().Wake()
			}
		})
		for i := range wakes {
			wake <- struct{}{}
			r.yield()
			r.P2P().Rest(returnFalse, i%2 == 0) // hangs if the wake is lost
			r.checkStop()
		}
		r.P2P().Rest(func() bool { return true }, false)
	})
}

// p2pLeft has rank 0 put a message and leave at once; the receiver still has to find it.
func p2pLeft(h *harness, n int) {
	for trial := range 20 {
		h.run(func(r *rank) {
			m := newMessages(0, n-1, []int{8})
			switch r.number {
			case 0:
				r.sendMessages(&mail{n - 1, m, nil})
				failIfIn(r.Close(), "Close")

			case n - 1:
				r.pause()
				for r.P2P().Lost(0) == nil {
					r.checkFailed()
					r.P2P().Rest(returnFalse, trial%2 == 0)
				}
				if !r.fetchMessages(&mail{0, m, nil}) {
					fail("what the rank had put before it left is not there")
				}
			}
		})
	}
}

// p2pLostAny has all ranks but rank 0 leave, one after the other. Lost(-1) has to return an error
// once none is left.
func p2pLostAny(h *harness, n int) {
	leaves := make([]*gate, n)
	for i := range leaves {
		leaves[i] = newGate(1)
	}
	h.run(func(r *rank) {
		if r.number > 0 {
			r.awaitGate(leaves[r.number])
			failIfIn(r.Close(), "Close")
			return
		}

		for peer := 1; peer < n; peer++ {
			if err := r.P2P().Lost(-1); err != nil {
				fail("Lost(-1) is %v, although ranks are left", err)
			}
			leaves[peer].pass()
			for r.P2P().Lost(peer) == nil {
				r.checkFailed()
				r.P2P().Rest(returnFalse, true)
			}
		}

		err := r.P2P().Lost(-1)
		if lost, ok := errors.AsType[*transport.PeerLostError](err); !ok || lost.Rank < 1 || lost.Rank >= n {
			fail("Lost(-1) is %v, although all other ranks have left", err)
		}
	})
}

// When the receiver gets its view of a message that the sender withdraws: before the withdrawal,
// at the same time, or never, since it asks for it afterwards.
const (
	viewBefore = iota
	viewAtOnce
	viewAfter
	moments
)

// p2pWithdraw has rank 0 withdraw a message, for every reason and at every moment (viewBefore,
// viewAtOnce, viewAfter). Once TryWithdraw returns true, rank 1 must not read that memory.
func p2pWithdraw(h *harness, n int) {
	reasons := []struct {
		name string
		do   func(sender, receiver *rank)
	}{
		{"the group fails", func(sender, _ *rank) { sender.Fail(failureBy(0, 0)) }},
		{"its sender leaves", func(sender, _ *rank) { sender.Close() }},
		{"its receiver leaves", func(_, receiver *rank) { receiver.Close() }},
	}

	for trial := range 16 * moments * len(reasons) {
		moment, reason := trial%moments, reasons[trial/moments%len(reasons)]
		memory := make([]byte, 16)
		viewed, withdrawn := newGate(1), newGate(1)
		h.runTitled("a message is withdrawn as "+reason.name, func(r *rank) {
			if r.number == 1 {
				if moment == viewAfter {
					r.awaitGate(withdrawn)
				}
				r.viewOnce(moment, viewed)
				return
			}

			p := r.P2P()
			m := newMessage(1, 0, 1, len(memory), 0)
			m.Bytes = memory
			r.putFirst(1, m)
			switch moment {
			case viewBefore:
				r.awaitGate(viewed)
			case viewAtOnce:
				r.pause()
			}

			reason.do(r, r.group.ranks[1])
			withdraw := func() bool { _, ok := p.TryWithdraw(1); return ok }
			for !withdraw() {
				r.checkStop()
				p.Rest(withdraw, trial%2 == 0)
			}
			withdrawn.pass()
			poison(memory) // it is the sender's again
			if !withdraw() {
				fail("TryWithdraw returns false after it returned true")
			}
		})
	}
}

// viewOnce checks the message of 16 zero bytes from rank 0, if TryNext returns it before rank 0
// has left or the group has failed.
func (r *rank) viewOnce(moment int, viewed *gate) {
	p := r.P2P()
	for {
		view, ok, err := p.TryNext(0)
		failIfIn(err, "TryNext")

		switch {
		case ok && moment == viewAfter && r.Failed():
			fail("TryNext returns a message although the group has failed")
		case ok:
			viewed.pass()
			yield(200)
			checkSame(view.Bytes, make([]byte, 16), "a message that is viewed while it is withdrawn")
			p.Take(0)
			return
		// No message comes any more.
		case r.Failed() || p.Lost(0) != nil:
			return
		}
		p.Rest(func() bool { return r.hasArrived(0) }, false)
	}
}

// p2pBehind builds a chain: ranks 1 to n-2 each wait for the next one, and rank n-1 does not
// wait. Behind(1) on rank 0 has to return n-1, and AwaitedBy of each rank the next one.
func p2pBehind(h *harness, n int) {
	ended := newGate(1)
	h.run(func(r *rank) {
		p := r.P2P()
		switch r.number {
		case n - 1:
			r.awaitGate(ended)

		case 0:
			defer func() {
				ended.pass()
				for _, r := range r.group.ranks {
					r.P2P().Wake()
				}
			}()
			r.untilBehind(1, n-1) // ranks 1 to n-2 rest
			for peer := 1; peer < n; peer++ {
				want := peer + 1
				if peer == n-1 {
					want = -1
				}
				if got := p.AwaitedBy(peer); got != want {
					fail("AwaitedBy(%d) is %d instead of %d", peer, got, want)
				}
			}
		default: // rests for the next rank
			p.WaitFor(r.number + 1)
			for !ended.isOpen() {
				r.checkStop()
				p.Rest(returnFalse, true)
			}
			p.WaitFor(-1)
		}
	})
}

// untilBehind waits until the ranks of the chain rest, so that Behind(peer) returns want.
func (r *rank) untilBehind(peer, want int) {
	for r.P2P().Behind(peer) != want {
		r.checkStop()
		r.yield()
	}
}

// p2pServed has rank 1 rest for rank 2 until rank 2 has sent it a message, and then stops rank 1
// at one of three places: with the view, after Take, or in the next Rest. Rank 1 has what it
// waited for, so Behind(1) on rank 0 has to return 1, not 2.
func p2pServed(h *harness, n int) {
	for where := range 3 {
		rests, stopped, checked := newGate(1), newGate(1), newGate(1)
		h.run(func(r *rank) {
			p := r.P2P()
			stop := func(here bool) {
				if here {
					stopped.pass()
					r.awaitGate(checked)
				}
			}

			switch r.number {
			case 0:
				r.untilBehind(1, 2)
				rests.pass()
				r.awaitGate(stopped)
				got := p.Behind(1)
				checked.pass()
				if got != 1 {
					fail("Behind(1) is %d, although that rank has sent rank 1 something, which stays in place", got)
				}

			case 1:
				p.WaitFor(2)
				var ok bool
				var err error
				for there := func() bool {
					if _, ok, err = p.TryNext(2); ok {
						stop(where == 0)
						p.Take(2)
					}

					return ok || err != nil
				}; !ok; failIfIn(err, "TryNext") {
					r.checkStop()
					p.Rest(there, true)
				}

				stop(where == 1)
				p.Rest(func() bool { stop(where == 2); return true }, false)
			case 2:
				r.awaitGate(rests)
				r.putFirst(1, newMessage(1, 2, 1, 16, 0))
				r.awaitGate(checked)
			}
		})
	}
}

// p2pGaveUp has rank 1 wait for rank 2 and give up, by calling Behind. Until rank 1 goes on,
// Behind(1) on rank 0 has to return 2, and afterwards 1. Rank 1 goes on in each of three ways.
func p2pGaveUp(h *harness, n int) {
	for _, way := range []struct {
		name string
		do   func(r *rank)
	}{
		{"announced that it waits for none", func(r *rank) { r.P2P().WaitFor(-1) }},
		{"entered a call", func(r *rank) { r.makeCalls(1) }},
		{"refused a call", func(r *rank) { r.refuseCalls(1) }},
	} {
		woken, gaveUp, checked, wentOn := newGate(1), newGate(1), newGate(1), newGate(n)

		h.run(func(r *rank) {
			p := r.P2P()
			switch r.number {
			case 0:
				r.untilBehind(1, 2)
				woken.pass()
				r.group.ranks[1].P2P().Wake()
				r.awaitGate(gaveUp)
				if got := p.Behind(1); got != 2 {
					fail("Behind(1) is %d, although rank 1 has just given up waiting for rank 2", got)
				}

				checked.pass()
			case 1:
				p.WaitFor(2)
				for !woken.isOpen() {
					r.checkStop()
					p.Rest(returnFalse, true)
				}
				if got := p.Behind(2); got != 2 {
					fail("Behind(2) is %d, although rank 2 does not wait", got)
				}
				gaveUp.pass()
			}

			r.awaitGate(checked)
			way.do(r)
			r.passAndAwait(wentOn)
			if r.number != 0 {
				return
			}
			if got := p.Behind(1); got != 1 {
				fail("Behind(1) is %d: rank 1 gave up waiting for it, and has %s since", got, way.name)
			}
		})
	}
}
