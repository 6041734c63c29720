package transporttest

import (
	"github.com/goccl/goccl/transport"
)

// newMessage is a message as both ends know it.
func newMessage(seq uint64, from, to, length, number int) transport.Message {
	k := mix(seq + uint64(from)<<20 + uint64(to)<<30 + uint64(number)<<40)
	return transport.Message{
		Bytes: data(length, int(k)), Total: length, Seq: seq + k&1, Clock: uint32(k),
	}
}

// noRank stands for the missing end of a one-way exchange.
const noRank = -1

// exchange sends a message to one rank while it receives another from a second one,
// part by part, as the engine does.
func (r *rank) exchange(to int, out transport.Message, from int, want transport.Message) {
	sending, receiving := to != noRank, from != noRank
	for sending || receiving {
		if sending {
			out.Bytes = out.Bytes[r.putPart(to, &out):]
			sending = len(out.Bytes) > 0
		}

		if receiving {
			n := r.receivePart(from, want)
			r.Take(from)
			want.Bytes = want.Bytes[n:]
			receiving = len(want.Bytes) > 0
		}
	}
}

func (r *rank) putPart(to int, m *transport.Message) int {
	n, err := r.Put(to, m)
	failIfIn(err, "Put to rank %d", to)
	if n > len(m.Bytes) || n < min(1, len(m.Bytes)) {
		fail("Put of %d bytes to rank %d took %d", len(m.Bytes), to, n)
	}
	return n
}

func (r *rank) drainTo(to int) { failIfIn(r.Drain(to), "Drain to rank %d", to) }

// receivePart waits for the next bytes of want and looks at them twice.
func (r *rank) receivePart(from int, want transport.Message) int {
	view, err := r.Next(from)
	failIfIn(err, "Next from rank %d", from)
	for range 2 {
		r.checkMessage(from, view, want)
		r.yield()
	}
	return len(view.Bytes)
}

// checkMessage fails unless view is the beginning of want.
func (r *rank) checkMessage(from int, view, want transport.Message) {
	n := len(view.Bytes)
	switch {
	case view.Total != want.Total || view.Seq != want.Seq || view.Clock != want.Clock:
		fail("message from rank %d: a Total of %d, Seq %d, Clock %d instead of %d, %d, %d", from,
			view.Total, view.Seq, view.Clock, want.Total, want.Seq, want.Clock)
	case n > len(want.Bytes) || n < min(1, len(want.Bytes)):
		fail("message from rank %d: %d bytes where %d are missing", from, n, len(want.Bytes))
	}
	checkSame(view.Bytes, want.Bytes[:n], "message from rank %d, the next %d bytes", from, n)
}

// tryMessageCall makes an Exposed call in which talk exchanges messages.
func (r *rank) tryMessageCall(talk func(seq uint64)) error {
	e := r.nextArrival()
	e.Exposed = true
	return r.makeCall(e, func(*rank) { talk(e.Seq) })
}

// messageCall is tryMessageCall for a call that must succeed.
func (r *rank) messageCall(talk func(seq uint64)) { failIf(r.tryMessageCall(talk)) }

// measureSizes returns message lengths around what the transport takes at once, which a
// message from rank 0 to rank 1 measures.
func (g *group) measureSizes() []int {
	const length = 64 << 10
	took := 0
	g.run(func(r *rank) {
		r.messageCall(func(seq uint64) {
			m := newMessage(seq, 0, 1, length, 0)
			switch r.number {
			case 0:
				took = r.putPart(1, &m)
				if m.Bytes = m.Bytes[took:]; took < length {
					r.exchange(1, m, noRank, m)
				}

			case 1:
				r.exchange(noRank, m, 0, m)
			}
		})
	})

	if took == length {
		return []int{0, 1, 47, 64, 4096, 64<<10 + 1, maxData}
	}
	return []int{0, 1, took - 1, took, took + 1, 5*took + took/2}
}

// runWithSizes is harness.run for scripts that use message lengths.
func (h *harness) runWithSizes(script func(r *rank, sizes []int)) {
	h.runGroup(func(g *group) {
		sizes := g.measureSizes()
		g.run(func(r *rank) { script(r, sizes) })
	})
}

func messageOrder(h *harness, n int) {
	h.runWithSizes(func(r *rank, sizes []int) {
		next, previous := (r.number+1)%n, (r.number+n-1)%n
		for range 3 {
			r.messageCall(func(seq uint64) {
				for i := range 4 * len(sizes) {
					length := sizes[(i+i/len(sizes))%len(sizes)]
					r.exchange(next, newMessage(seq, r.number, next, length, i), previous, newMessage(seq, previous, r.number, length, i))
				}
				r.drainTo(next)
			})
			r.messageCall(func(seq uint64) { // one way only
				for i := range 20 {
					m := newMessage(seq, 0, n-1, sizes[i%len(sizes)], i)
					switch r.number {
					case 0:
						r.exchange(n-1, m, noRank, m)
					case n - 1:
						r.exchange(noRank, m, 0, m)
					}
				}
			})
		}
	})
}

func messageAllPairs(h *harness, n int) {
	h.runWithSizes(func(r *rank, sizes []int) {
		for i := range 2 * len(sizes) {
			failIf(r.exchangeAll(func(from int) int { return sizes[(i+from*(i/len(sizes)))%len(sizes)] }))
		}
	})
}

// exchangeAll makes a call in which every rank sends length(rank) bytes to every other
// rank, to its successor first.
func (r *rank) exchangeAll(length func(from int) int) error {
	return r.tryMessageCall(func(seq uint64) {
		for shift := 1; shift < r.size; shift++ {
			to, from := (r.number+shift)%r.size, (r.number+r.size-shift)%r.size
			r.exchange(to, newMessage(seq, r.number, to, length(r.number), shift), from, newMessage(seq, from, r.number, length(from), shift))
			r.drainTo(to)
		}
	})
}

func messagesHeld(h *harness, n int) {
	h.run(func(r *rank) {
		for range 50 {
			r.messageCall(r.holdViews)
		}
	})
}

// holdViews sends a byte to every rank, waits for one from every rank, and takes them then.
func (r *rank) holdViews(seq uint64) {
	for shift := 1; shift < r.size; shift++ {
		to := (r.number + shift) % r.size
		m := newMessage(seq, r.number, to, 1, 0)
		r.putPart(to, &m)
	}

	views := make([]transport.Message, r.size)
	for shift := 1; shift < r.size; shift++ {
		from := (r.number + shift) % r.size
		var err error
		views[from], err = r.Next(from)
		failIfIn(err, "Next from rank %d", from)
		r.yield()
	}

	for shift := r.size - 1; shift > 0; shift-- {
		from := (r.number + shift) % r.size
		r.checkMessage(from, views[from], newMessage(seq, from, r.number, 1, 0))
		r.Take(from)
	}
}

func messageDrain(h *harness, n int) {
	taken := 0 // messages that the receiver has looked at, written before its last Take
	buf := make([]byte, maxData)
	h.runWithSizes(func(r *rank, sizes []int) {
		for i := range 12 * n {
			from, to := i%n, (i+1)%n
			r.messageCall(func(seq uint64) {
				m := newMessage(seq, from, to, sizes[i/n%len(sizes)], i)

				switch r.number {
				case from:
					m.Bytes = buf[:copy(buf, m.Bytes)]
					r.exchange(to, m, noRank, m)
					r.drainTo(to)
					if taken != i+1 {
						fail("Drain to rank %d returned before message %d was taken", to, i)
					}

					poison(m.Bytes)
				case to:
					r.pause()
					for last := false; !last; {
						n := r.receivePart(from, m)
						m.Bytes = m.Bytes[n:]
						if last = len(m.Bytes) == 0; last {
							taken = i + 1
						}

						r.Take(from)
					}
				}
			})
		}
	})
}
