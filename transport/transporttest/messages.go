package transporttest

import (
	"bytes"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// letter is a message as both ends know it.
func letter(seq uint64, from, to, length, number int) transport.Message {
	k := mix(seq + uint64(from)<<20 + uint64(to)<<30 + uint64(number)<<40)
	return transport.Message{
		Bytes: data(length, int(k)), Total: length, Seq: seq + k&1, Clock: uint32(k),
	}
}

// noRank stands for the missing end of a one-way exchange.
const noRank = -1

// exchange sends a message to one rank while it receives one from another, in
// turns, the way the engine does.
func (r *rank) exchange(to int, out transport.Message, from int, want transport.Message) error {
	sending, receiving := to != noRank, from != noRank
	for sending || receiving {
		if sending {
			n, err := r.put(to, &out)
			if err != nil {
				return err
			}
			out.Bytes = out.Bytes[n:]
			sending = len(out.Bytes) > 0
		}
		if receiving {
			n, err := r.receive(from, want)
			if err != nil {
				return err
			}
			want.Bytes = want.Bytes[n:]
			receiving = len(want.Bytes) > 0
		}
	}
	return nil
}

func (r *rank) put(to int, m *transport.Message) (int, error) {
	n, err := r.Put(to, m)
	if err != nil {
		return 0, fmt.Errorf("Put to rank %d: %w", to, err)
	}
	if n > len(m.Bytes) || n < min(1, len(m.Bytes)) {
		return 0, fmt.Errorf("Put of %d bytes to rank %d took %d", len(m.Bytes), to, n)
	}
	return n, nil
}

// receive takes the next bytes of want.
func (r *rank) receive(from int, want transport.Message) (int, error) {
	n, err := r.look(from, want)
	if err == nil {
		r.Take(from)
	}
	return n, err
}

// look awaits the next bytes of want, and looks twice.
func (r *rank) look(from int, want transport.Message) (int, error) {
	view, err := r.Next(from)
	if err != nil {
		return 0, fmt.Errorf("Next from rank %d: %w", from, err)
	}
	for range 2 {
		if err := sameMessage(view, want); err != nil {
			return 0, fmt.Errorf("message from rank %d to rank %d: %w", from, r.me, err)
		}
		r.yield()
	}
	return len(view.Bytes), nil
}

// sameMessage returns an error if view is not the beginning of want.
func sameMessage(view, want transport.Message) error {
	n := len(view.Bytes)
	switch {
	case view.Total != want.Total || view.Seq != want.Seq || view.Clock != want.Clock:
		return fmt.Errorf("a Total of %d, Seq %d, Clock %d instead of %d, %d, %d", view.Total, view.Seq,
			view.Clock, want.Total, want.Seq, want.Clock)
	case n > len(want.Bytes) || n < min(1, len(want.Bytes)):
		return fmt.Errorf("%d bytes where %d are missing", n, len(want.Bytes))
	case !bytes.Equal(view.Bytes, want.Bytes[:n]):
		return same(view.Bytes, want.Bytes[:n], "the next %d bytes", n)
	}
	return nil
}

// conversation makes an exposed call in which talk exchanges messages.
func (r *rank) conversation(talk func(seq uint64) error) error {
	e := r.entry()
	e.Exposed = true
	return r.call(e, func(*rank) error { return talk(e.Seq) })
}

// sizes returns lengths of messages around what the transport takes at once,
// which a message from rank 0 to rank 1 finds out.
func (w *world) sizes() ([]int, error) {
	const length = 64 << 10
	took := 0
	err := w.each(func(r *rank) error {
		return r.conversation(func(seq uint64) error {
			m := letter(seq, 0, 1, length, 0)
			switch r.me {
			case 0:
				n, err := r.put(1, &m)
				if err != nil {
					return err
				}
				took = n
				m.Bytes = m.Bytes[n:]
				if n == length {
					return nil
				}
				return r.exchange(1, m, noRank, m)
			case 1:
				return r.exchange(noRank, m, 0, m)
			}
			return nil
		})
	})
	if took == length {
		return []int{0, 1, 47, 64, 4096, 64<<10 + 1, maxData}, err
	}
	return []int{0, 1, took - 1, took, took + 1, 5*took + took/2}, err
}

func messageOrder(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		sizes, err := w.sizes()
		if err != nil {
			return err
		}
		return w.each(func(r *rank) error {
			next, previous := (r.me+1)%n, (r.me+n-1)%n
			for range 3 {
				err := r.conversation(func(seq uint64) error {
					for i := range 4 * len(sizes) {
						length := sizes[(i+i/len(sizes))%len(sizes)]
						out := letter(seq, r.me, next, length, i)
						want := letter(seq, previous, r.me, length, i)
						if err := r.exchange(next, out, previous, want); err != nil {
							return fmt.Errorf("message %d of %d bytes: %w", i, length, err)
						}
					}
					return r.Drain(next)
				})
				if err != nil {
					return err
				}
				err = r.conversation(func(seq uint64) error { // one way only
					for i := range 20 {
						m := letter(seq, 0, n-1, sizes[i%len(sizes)], i)
						var err error
						switch r.me {
						case 0:
							err = r.exchange(n-1, m, noRank, m)
						case n - 1:
							err = r.exchange(noRank, m, 0, m)
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func messageAllPairs(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		sizes, err := w.sizes()
		if err != nil {
			return err
		}
		return w.each(func(r *rank) error {
			for i := range 2 * len(sizes) {
				length := func(from int) int { return sizes[(i+from*(i/len(sizes)))%len(sizes)] }
				if err := r.allPairs(length); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// allPairs makes a call in which every rank sends length(rank) bytes to every
// other, to its successor first.
func (r *rank) allPairs(length func(from int) int) error {
	return r.conversation(func(seq uint64) error {
		for shift := 1; shift < r.n; shift++ {
			to, from := (r.me+shift)%r.n, (r.me+r.n-shift)%r.n
			out := letter(seq, r.me, to, length(r.me), shift)
			want := letter(seq, from, r.me, length(from), shift)
			if err := r.exchange(to, out, from, want); err != nil {
				return err
			}
			if err := r.Drain(to); err != nil {
				return fmt.Errorf("Drain to rank %d: %w", to, err)
			}
		}
		return nil
	})
}

func messagesHeld(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		return w.each(func(r *rank) error {
			for range 50 {
				if err := r.conversation(r.holdAll); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// holdAll sends a byte to every rank and takes those it gets when it has all.
func (r *rank) holdAll(seq uint64) error {
	for shift := 1; shift < r.n; shift++ {
		to := (r.me + shift) % r.n
		m := letter(seq, r.me, to, 1, 0)
		if _, err := r.put(to, &m); err != nil {
			return err
		}
	}
	views := make([]transport.Message, r.n)
	for shift := 1; shift < r.n; shift++ {
		from := (r.me + shift) % r.n
		view, err := r.Next(from)
		if err != nil {
			return fmt.Errorf("Next from rank %d: %w", from, err)
		}
		views[from] = view
		r.yield()
	}
	for shift := r.n - 1; shift > 0; shift-- {
		from := (r.me + shift) % r.n
		if err := sameMessage(views[from], letter(seq, from, r.me, 1, 0)); err != nil {
			return fmt.Errorf("message from rank %d to rank %d: %w", from, r.me, err)
		}
		r.Take(from)
	}
	return nil
}

func messageDrain(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		sizes, err := w.sizes()
		if err != nil {
			return err
		}
		taken := 0 // by the rank that receives, before its last Take
		buf := make([]byte, maxData)
		return w.each(func(r *rank) error {
			for i := range 12 * n {
				from, to := i%n, (i+1)%n
				err := r.conversation(func(seq uint64) error {
					m := letter(seq, from, to, sizes[i/n%len(sizes)], i)
					switch r.me {
					case from:
						m.Bytes = buf[:copy(buf, m.Bytes)]
						if err := r.exchange(to, m, noRank, m); err != nil {
							return err
						}
						if err := r.Drain(to); err != nil {
							return fmt.Errorf("Drain to rank %d: %w", to, err)
						}
						if taken != i+1 {
							return fmt.Errorf("Drain to rank %d returned before message %d was taken", to, i)
						}
						poison(m.Bytes)
					case to:
						r.pause()
						for {
							n, err := r.look(from, m)
							if err != nil {
								return err
							}
							m.Bytes = m.Bytes[n:]
							if len(m.Bytes) == 0 {
								taken = i + 1
							}
							r.Take(from)
							if len(m.Bytes) == 0 {
								return nil
							}
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}
