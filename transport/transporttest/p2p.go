package transporttest

import (
	"slices"

	"github.com/goccl/goccl/transport"
)

// mail holds the messages that this rank still has to send to peer, or still expects from peer,
// in order.
type mail struct {
	peer    int
	letters []transport.Message
	ended   func() // called before Take of the last part of a message; may be nil
}

// step drops n bytes from the first message, and reports whether that was its end.
func (m *mail) step(n int) (ended bool) {
	first := &m.letters[0]
	if first.Bytes = first.Bytes[n:]; len(first.Bytes) > 0 {
		return false
	}
	m.letters = m.letters[1:]
	return true
}

// send puts messages of m until the stream has no room, and reports whether it put anything.
func (r *rank) send(m *mail) (moved bool) {
	for ; len(m.letters) > 0; moved = true {
		n, ok, err := r.P2P().TryPut(m.peer, &m.letters[0])
		mustIn(err, "P2P: TryPut to rank %d", m.peer)
		if left := len(m.letters[0].Bytes); n > left || n < 0 || ok && n < min(1, left) || !ok && n != 0 {
			fail("TryPut of %d bytes to rank %d took %d, ok %v", left, m.peer, n, ok)
		}
		if !ok {
			break
		}
		m.step(n)
	}
	return moved
}

// putFirst puts a message into an empty stream.
func (r *rank) putFirst(to int, m transport.Message) {
	if !r.send(&mail{to, []transport.Message{m}, nil}) {
		fail("TryPut of the first message took nothing")
	}
}

// fetch checks and takes the messages of m that have arrived, and reports whether it took
// anything. It calls TryNext twice for each part: both calls have to return the same view.
func (r *rank) fetch(m *mail) (moved bool) {
	for ; len(m.letters) > 0; moved = true {
		n := 0
		for look := range 2 {
			view, ok, err := r.P2P().TryNext(m.peer)
			mustIn(err, "P2P: TryNext from rank %d", m.peer)
			switch {
			case !ok && look == 0:
				return moved
			case !ok:
				fail("TryNext from rank %d: what it returned before is gone", m.peer)
			}
			r.checkMessage(m.peer, view, m.letters[0])
			n = len(view.Bytes)
		}
		if m.step(n) && m.ended != nil {
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
			moved = r.send(m) || moved
		}
		for _, m := range in {
			moved = r.fetch(m) || moved
		}
		if r.delivered(out, in) {
			return
		}
		r.checkFailed()
		if !moved {
			r.P2P().Rest(func() bool { return r.canMove(out, in) || r.delivered(out, in) }, noSpin)
		}
	}
}

// checkFailed ends the script if the group has failed.
func (r *rank) checkFailed() {
	if r.Failed() {
		must(transport.ErrFailed)
	}
}

// ring sends messages of these lengths to the next rank, and receives such messages from the
// previous one.
func (r *rank) ring(lengths []int, noSpin bool) {
	next, previous := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	out, in := &mail{next, letters(r.me, next, lengths), nil}, &mail{previous, letters(previous, r.me, lengths), nil}
	r.deliver([]*mail{out}, []*mail{in}, noSpin)
}

// delivered reports whether the receivers have taken all of out, and this rank all of in.
func (r *rank) delivered(out, in []*mail) bool {
	pending := func(m *mail) bool { return len(m.letters) > 0 }
	undrained := func(m *mail) bool { return !r.P2P().TryDrained(m.peer) }
	return !slices.ContainsFunc(out, pending) && !slices.ContainsFunc(in, pending) && !slices.ContainsFunc(out, undrained)
}

// canMove reports whether deliver can send or receive something. It counts a stream as free to
// send only once the receiver has taken everything before.
func (r *rank) canMove(out, in []*mail) bool {
	return slices.ContainsFunc(out, func(m *mail) bool { return len(m.letters) > 0 && r.P2P().TryDrained(m.peer) }) ||
		slices.ContainsFunc(in, func(m *mail) bool { return len(m.letters) > 0 && r.arrived(m.peer) })
}

// arrived reports whether TryNext returns a message from a rank, or an error.
func (r *rank) arrived(from int) bool {
	_, ok, err := r.P2P().TryNext(from)
	return ok || err != nil
}

// letters returns messages from one rank to another, of these lengths.
func letters(from, to int, lengths []int) (all []transport.Message) {
	for i, length := range lengths {
		all = append(all, letter(uint64(i), from, to, length, 7))
	}
	return all
}

// p2pOrder sends messages of all sizes between all pairs of ranks at once; they have to arrive
// whole and in order.
func p2pOrder(h *harness, n int) {
	h.eachOfSizes(n, func(r *rank, sizes []int) {
		for i := range 4 {
			var out, in []*mail
			for shift := 1; shift < n; shift++ {
				to, from := (r.me+shift)%n, (r.me+n-shift)%n
				out = append(out, &mail{to, letters(r.me, to, sizes), nil})
				in = append(in, &mail{from, letters(from, r.me, sizes), nil})
			}
			r.pause()
			r.deliver(out, in, (i+r.me)%2 == 0)
		}
	})
}

// p2pBeside has a second goroutine of each rank use the P2P while the first makes calls that
// exchange messages between the same ranks.
func p2pBeside(h *harness, n int) {
	h.each(n, 0, "", func(r *rank) {
		next, previous := (r.me+1)%n, (r.me+n-1)%n
		beside := make(chan error, 1)
		go func() {
			beside <- r.failing(func() {
				for i := range 20 {
					r.ring([]int{0, 1, 40, 300}, i%2 == 0)
				}
			})
		}()
		err := protected(func() {
			for i := range 60 {
				r.converse(func(seq uint64) {
					r.exchange(next, letter(seq, r.me, next, 40*i, i), previous, letter(seq, previous, r.me, 40*i, i))
					r.drain(next)
				})
			}
		})
		if other := <-beside; err == nil || other != nil && consequence(err) {
			mustIn(other, "P2P beside calls")
		}
		must(err)
	})
}

// p2pDrain checks that TryDrained returns true only after the receiver has taken the message, and
// that the sender then sees what the receiver wrote before.
func p2pDrain(h *harness, n int) {
	// Not atomic: the race detector reports it unless TryDrained orders it.
	taken := 0
	buffer := make([]byte, 300)
	h.each(n, 0, "", func(r *rank) {
		for i := range 200 {
			m := letter(uint64(i), 0, n-1, len(buffer), 0)
			switch r.me {
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
	h.each(n, 0, "", func(r *rank) {
		wake := make(chan struct{})
		defer close(wake)
		go func() {
			for range wake {
				r.P2P().Wake()
			}
		}()
		for i := range 300 {
			wake <- struct{}{}
			r.yield()
			r.P2P().Rest(no, i%2 == 0) // hangs if the wake is lost
			r.checkStop()
		}
		r.P2P().Rest(func() bool { return true }, false)
	})
}

// p2pLeft has rank 0 put a message and leave at once; the receiver still has to find it.
func p2pLeft(h *harness, n int) {
	for trial := range 20 {
		h.each(n, uint64(trial), "", func(r *rank) {
			m := letters(0, n-1, []int{8})
			switch r.me {
			case 0:
				r.send(&mail{n - 1, m, nil})
				mustIn(r.Close(), "Close")
			case n - 1:
				r.pause()
				for r.P2P().Lost(0) == nil {
					r.checkFailed()
					r.P2P().Rest(no, trial%2 == 0)
				}
				if !r.fetch(&mail{0, m, nil}) {
					fail("what the rank had put before it left is not there")
				}
			}
		})
	}
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
		h.each(n, uint64(trial), "a message is withdrawn as "+reason.name, func(r *rank) {
			if r.me == 1 {
				if moment == viewAfter {
					r.await(withdrawn)
				}
				r.viewOnce(moment, viewed)
				return
			}
			p := r.P2P()
			m := letter(1, 0, 1, len(memory), 0)
			m.Bytes = memory
			r.putFirst(1, m)
			switch moment {
			case viewBefore:
				r.await(viewed)
			case viewAtOnce:
				r.pause()
			}
			reason.do(r, r.w.ranks[1])
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
		mustIn(err, "TryNext")
		switch {
		case ok && moment == viewAfter && r.Failed():
			fail("TryNext returns a message although the group has failed")
		case ok:
			viewed.pass()
			yield(200)
			same(view.Bytes, make([]byte, 16), "a message that is viewed while it is withdrawn")
			p.Take(0)
			return
		case r.Failed() || p.Lost(0) != nil:
			return
		}
		p.Rest(func() bool { return r.arrived(0) }, false)
	}
}

// p2pBehind builds a chain: ranks 1 to n-2 each wait for the next one, and rank n-1 does not
// wait. Behind(1) on rank 0 has to return n-1.
func p2pBehind(h *harness, n int) {
	over := newGate(1)
	h.each(n, 0, "", func(r *rank) {
		p := r.P2P()
		switch r.me {
		case n - 1:
			r.await(over)
		case 0:
			defer func() {
				over.pass()
				for _, r := range r.w.ranks {
					r.P2P().Wake()
				}
			}()
			r.untilBehind(1, n-1) // ranks 1 to n-2 rest
		default: // rests for the next rank
			p.WaitFor(r.me + 1)
			for !over.isOpen() {
				r.checkStop()
				p.Rest(no, true)
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
		h.each(n, 0, "", func(r *rank) {
			p := r.P2P()
			stop := func(here bool) {
				if here {
					stopped.pass()
					r.await(checked)
				}
			}
			switch r.me {
			case 0:
				r.untilBehind(1, 2)
				rests.pass()
				r.await(stopped)
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
				}; !ok; mustIn(err, "TryNext") {
					r.checkStop()
					p.Rest(there, true)
				}
				stop(where == 1)
				p.Rest(func() bool { stop(where == 2); return true }, false)
			case 2:
				r.await(rests)
				r.putFirst(1, letter(1, 2, 1, 16, 0))
				r.await(checked)
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
		{"entered a call", func(r *rank) { r.sync(1) }},
		{"refused a call", func(r *rank) { r.refuse(1) }},
	} {
		woken, gaveUp, checked, wentOn := newGate(1), newGate(1), newGate(1), newGate(n)
		h.each(n, 0, "", func(r *rank) {
			p := r.P2P()
			switch r.me {
			case 0:
				r.untilBehind(1, 2)
				woken.pass()
				r.w.ranks[1].P2P().Wake()
				r.await(gaveUp)
				if got := p.Behind(1); got != 2 {
					fail("Behind(1) is %d, although rank 1 has just given up waiting for rank 2", got)
				}
				checked.pass()
			case 1:
				p.WaitFor(2)
				for !woken.isOpen() {
					r.checkStop()
					p.Rest(no, true)
				}
				if got := p.Behind(2); got != 2 {
					fail("Behind(2) is %d, although rank 2 does not wait", got)
				}
				gaveUp.pass()
			}
			r.await(checked)
			way.do(r)
			r.meet(wentOn)
			if r.me != 0 {
				return
			}
			if got := p.Behind(1); got != 1 {
				fail("Behind(1) is %d: rank 1 gave up waiting for it, and has %s since", got, way.name)
			}
		})
	}
}
