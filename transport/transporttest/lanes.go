package transporttest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/transport"
)

// mail is one end of messages through a lane: what is still to be sent to a rank, or to
// come from one, in order.
type mail struct {
	peer    int
	letters []transport.Message
}

// step moves on by n bytes, and reports whether a message ended there.
func (m *mail) step(n int) (ended bool) {
	first := &m.letters[0]
	first.Bytes = first.Bytes[n:]
	if len(first.Bytes) > 0 {
		return false
	}
	m.letters = m.letters[1:]
	return true
}

// send puts what there is room for, and reports whether that was anything.
func (r *rank) send(m *mail) (moved bool, err error) {
	for len(m.letters) > 0 {
		n, ok, err := r.P2P().TryPut(m.peer, &m.letters[0])
		if err != nil {
			return moved, fmt.Errorf("TryPut to rank %d: %w", m.peer, err)
		}
		if left := len(m.letters[0].Bytes); n > left || n < 0 || ok && n < min(1, left) || !ok && n != 0 {
			return moved, fmt.Errorf("TryPut of %d bytes to rank %d took %d, ok %v", left, m.peer, n, ok)
		}
		if !ok {
			return moved, nil
		}
		moved = true
		m.step(n)
	}
	return moved, nil
}

// fetch takes what is there, and reports whether that was anything.
func (r *rank) fetch(m *mail) (moved bool, err error) {
	for len(m.letters) > 0 {
		n, ok, err := r.glimpse(m)
		if err != nil || !ok {
			return moved, err
		}
		moved = true
		m.step(n)
		r.P2P().Take(m.peer)
	}
	return moved, nil
}

// glimpse looks at the next part twice.
func (r *rank) glimpse(m *mail) (n int, ok bool, err error) {
	for range 2 {
		view, there, err := r.P2P().TryNext(m.peer)
		if err != nil {
			return 0, false, fmt.Errorf("TryNext from rank %d: %w", m.peer, err)
		}
		if ok && !there {
			return 0, false, fmt.Errorf("TryNext from rank %d: what was there is gone", m.peer)
		}
		if !there {
			return 0, false, nil
		}
		if err := sameMessage(view, m.letters[0]); err != nil {
			return 0, false, fmt.Errorf("message from rank %d to rank %d: %w", m.peer, r.me, err)
		}
		n, ok = len(view.Bytes), true
	}
	return n, ok, nil
}

// deliver sends and fetches mail until all of it has moved and was taken.
func (r *rank) deliver(out, in []*mail, patient bool) error {
	for {
		moved := false
		for _, m := range out {
			some, err := r.send(m)
			if err != nil {
				return err
			}
			moved = moved || some
		}
		for _, m := range in {
			some, err := r.fetch(m)
			if err != nil {
				return err
			}
			moved = moved || some
		}
		switch {
		case r.delivered(out, in):
			return nil
		case r.Failed():
			return transport.ErrFailed
		case !moved:
			r.P2P().Rest(func() bool { return r.canMove(out, in) || r.delivered(out, in) }, patient)
		}
	}
}

func (r *rank) delivered(out, in []*mail) bool {
	for _, m := range slices.Concat(out, in) {
		if len(m.letters) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(out, func(m *mail) bool { return !r.P2P().TryDrained(m.peer) })
}

// canMove reports whether deliver has anything to do, for which it suffices to know of
// lanes without messages under way.
func (r *rank) canMove(out, in []*mail) bool {
	return slices.ContainsFunc(out, func(m *mail) bool { return len(m.letters) > 0 && r.P2P().TryDrained(m.peer) }) ||
		slices.ContainsFunc(in, func(m *mail) bool { return len(m.letters) > 0 && r.there(m.peer) })
}

// there reports whether there is something from a rank, or an error.
func (r *rank) there(from int) bool {
	_, ok, err := r.P2P().TryNext(from)
	return ok || err != nil
}

// letters returns messages from one rank to another, of all the lengths.
func letters(from, to int, lengths []int) (all []transport.Message) {
	for i, length := range lengths {
		all = append(all, letter(uint64(i), from, to, length, 7))
	}
	return all
}

func laneOrder(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		sizes, err := w.sizes()
		if err != nil {
			return err
		}
		return w.each(func(r *rank) error {
			for i := range 4 {
				var out, in []*mail
				for shift := 1; shift < n; shift++ {
					to, from := (r.me+shift)%n, (r.me+n-shift)%n
					out = append(out, &mail{to, letters(r.me, to, sizes)})
					in = append(in, &mail{from, letters(from, r.me, sizes)})
				}
				r.pause()
				if err := r.deliver(out, in, (i+r.me)%2 == 0); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// laneBeside lets a second goroutine of each rank use its lane while the first makes
// calls in which messages go between the same ranks.
func laneBeside(h *harness, n int) error {
	lengths := []int{0, 1, 40, 300}
	return h.world(n, 0, func(w *world) error {
		return w.each(func(r *rank) error {
			next, previous := (r.me+1)%n, (r.me+n-1)%n
			beside := make(chan error, 1)
			go func() {
				beside <- protected(func(r *rank) (err error) {
					defer func() {
						if err != nil {
							r.Fail(failureOf(r.me, 0, err))
						}
					}()
					for i := range 20 {
						out, in := &mail{next, letters(r.me, next, lengths)}, &mail{previous, letters(previous, r.me, lengths)}
						if err := r.deliver([]*mail{out}, []*mail{in}, i%2 == 0); err != nil {
							return fmt.Errorf("lane: %w", err)
						}
					}
					return nil
				}, r)
			}()
			var err error
			for i := 0; i < 60 && err == nil; i++ {
				err = r.conversation(func(seq uint64) error {
					if err := r.exchange(next, letter(seq, r.me, next, 40*i, i), previous, letter(seq, previous, r.me, 40*i, i)); err != nil {
						return err
					}
					return r.Drain(next)
				})
			}
			if other := <-beside; err == nil || other != nil && consequence(err) {
				return other
			}
			return err
		})
	})
}

func laneDrain(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		// A plain trace: whoever finds a lane drained has to see what was done before.
		taken := 0
		buffer := make([]byte, 300)
		return w.each(func(r *rank) error {
			lane := r.P2P()
			for i := range 200 {
				m := letter(uint64(i), 0, n-1, len(buffer), 0)
				switch r.me {
				case 0:
					m.Bytes = buffer[:copy(buffer, m.Bytes)]
					out := &mail{n - 1, []transport.Message{m}}
					if err := r.deliver([]*mail{out}, nil, i%2 == 0); err != nil {
						return err
					}
					if taken != i+1 {
						return fmt.Errorf("TryDrained is true before message %d was taken", i)
					}
					poison(buffer)
				case n - 1:
					r.pause()
					in := &mail{0, []transport.Message{m}}
					for len(in.letters) > 0 {
						took, ok, err := r.glimpse(in)
						switch {
						case err != nil:
							return err
						case r.Failed():
							return transport.ErrFailed
						case !ok:
							lane.Rest(func() bool { return r.there(0) }, i%3 == 0)
							continue
						}
						if in.step(took) {
							taken = i + 1
						}
						lane.Take(0)
					}
				}
			}
			return nil
		})
	})
}

func never() bool { return false }

// laneWake lets a goroutine of each rank wake its lane, before or while it rests.
func laneWake(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		return w.each(func(r *rank) error {
			woken := make(chan struct{})
			defer close(woken)
			go func() {
				for range woken {
					r.P2P().Wake()
				}
			}()
			for i := range 300 {
				woken <- struct{}{}
				r.yield()
				r.P2P().Rest(never, i%2 == 0) // hangs if the wake is lost
				if r.w.stopping() {
					return errStopped
				}
			}
			r.P2P().Rest(func() bool { return true }, false)
			return nil
		})
	})
}

// stopping reports whether another rank has failed its script.
func (w *world) stopping() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// laneEvents lets ranks rest until the last one makes something happen.
func laneEvents(h *harness, n int) error {
	acts := []struct {
		name string
		do   func(r *rank)
		seen func(r *rank) bool
	}{
		{"a rank fails the group", func(r *rank) { r.Fail(failureBy(r.me, 0)) }, func(r *rank) bool { return r.Failed() }},
		{"a rank leaves", func(r *rank) { r.Close() }, func(r *rank) bool {
			lost := (*transport.PeerLostError)(nil)
			return errors.As(r.P2P().Lost(n-1), &lost) && lost.Rank == n-1
		}},
		{"the endpoint is closed", func(r *rank) {
			for _, r := range r.w.ranks {
				r.Close()
			}
		}, func(r *rank) bool { return errors.Is(r.P2P().Lost(n-1), transport.ErrClosed) }},
	}
	for trial := range 8 * len(acts) {
		act := acts[trial%len(acts)]
		err := h.world(n, uint64(trial), func(w *world) error {
			return w.each(func(r *rank) error {
				if r.me == n-1 {
					if err := r.P2P().Lost(0); err != nil {
						return fmt.Errorf("Lost(0) at first: %w", err)
					}
					r.pause()
					act.do(r)
					return nil
				}
				for !act.seen(r) {
					if w.stopping() {
						return errStopped
					}
					r.P2P().Rest(never, (trial+r.me)%2 == 0)
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("lanes rest while %s: %w", act.name, err)
		}
	}
	return nil
}

// laneLeft lets a rank leave right after it has put a message.
func laneLeft(h *harness, n int) error {
	for trial := range 20 {
		err := h.world(n, uint64(trial), func(w *world) error {
			return w.each(func(r *rank) error {
				m := letters(0, n-1, []int{8})
				switch r.me {
				case 0:
					if _, err := r.send(&mail{n - 1, m}); err != nil {
						return err
					}
					return r.Close()
				case n - 1:
					r.pause()
					lane := r.P2P()
					for lane.Lost(0) == nil {
						if r.Failed() {
							return transport.ErrFailed
						}
						lane.Rest(never, trial%2 == 0)
					}
					if moved, err := r.fetch(&mail{0, m}); err != nil || !moved {
						return fmt.Errorf("what the rank had put before it left is not there (error: %w)", err)
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// laneWithdraw lets a rank take back what it has put, for all reasons that there are, while
// the other has a view of it, or may be about to get one, or when it has none.
func laneWithdraw(h *harness, n int) error {
	const (
		takes = iota // the receiver has a view
		races
		comesLate
		kinds
	)
	reasons := []struct {
		name string
		do   func(sender, receiver *rank)
	}{
		{"the group fails", func(sender, _ *rank) { sender.Fail(failureBy(0, 0)) }},
		{"its sender leaves", func(sender, _ *rank) { sender.Close() }},
		{"its receiver leaves", func(_, receiver *rank) { receiver.Close() }},
	}
	for trial := range 16 * kinds * len(reasons) {
		kind, reason := trial%kinds, reasons[trial/kinds%len(reasons)]
		err := h.world(n, uint64(trial), func(w *world) error {
			memory := make([]byte, 16)
			viewed, withdrew := newGate(1), newGate(1)
			return w.each(func(r *rank) error {
				lane := r.P2P()
				if r.me == 0 {
					m := letter(1, 0, 1, len(memory), 0)
					m.Bytes = memory
					if _, ok, err := lane.TryPut(1, &m); !ok || err != nil {
						return fmt.Errorf("TryPut of the first message: ok %v, error %w", ok, err)
					}
					switch kind {
					case takes:
						if err := w.await(viewed.opened); err != nil {
							return err
						}
					case races:
						r.pause()
					}
					reason.do(w.ranks[0], w.ranks[1])
					gone := func() bool { _, ok := lane.TryWithdraw(1); return ok }
					for !gone() {
						if w.stopping() {
							return errStopped
						}
						lane.Rest(gone, trial%2 == 0)
					}
					withdrew.pass()
					poison(memory) // mine again
					if _, ok := lane.TryWithdraw(1); !ok {
						return errors.New("TryWithdraw: what was withdrawn is viewed")
					}
					return nil
				}
				if kind == comesLate {
					if err := w.await(withdrew.opened); err != nil {
						return err
					}
				}
				for {
					view, ok, err := lane.TryNext(0)
					switch {
					case err != nil:
						return err
					case ok && kind == comesLate && r.Failed():
						return errors.New("TryNext shows a message although the group has failed")
					case ok:
						viewed.pass()
						yield(200)
						if err := same(view.Bytes, make([]byte, 16), "a message that is viewed while its sender withdraws, as "+reason.name); err != nil {
							return err
						}
						lane.Take(0)
						return nil
					case r.Failed() || lane.Lost(0) != nil:
						return nil
					}
					lane.Rest(func() bool { return r.there(0) }, false)
				}
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// laneBehind lets ranks wait for each other in a chain, at whose end one does not wait.
func laneBehind(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		over := newGate(1)
		return w.each(func(r *rank) error {
			lane := r.P2P()
			if r.me == n-1 {
				return w.await(over.opened)
			}
			if r.me > 0 { // it rests for the next
				lane.WaitFor(r.me + 1)
				for {
					select {
					case <-over.opened:
						lane.WaitFor(-1)
						return nil
					case <-r.w.stop:
						return errStopped
					default:
						lane.Rest(never, true)
					}
				}
			}
			defer func() {
				over.pass()
				for _, r := range w.ranks {
					r.P2P().Wake()
				}
			}()
			return r.untilBehind(1, n-1) // all rest
		})
	})
}

// laneServed stops a rank that has rested for another, after that has sent it something: as it
// takes that, as it has taken it, or as it is about to rest again.
func laneServed(h *harness, n int) error {
	for where := range 3 {
		err := h.world(n, 0, func(w *world) error {
			rests, stopped, checked := newGate(1), newGate(1), newGate(1)
			stop := func() error {
				stopped.pass()
				return w.await(checked.opened)
			}
			return w.each(func(r *rank) error {
				lane := r.P2P()
				switch r.me {
				case 0:
					if err := r.untilBehind(1, 2); err != nil {
						return err
					}
					rests.pass()
					if err := w.await(stopped.opened); err != nil {
						return err
					}
					defer checked.pass()
					if got := lane.Behind(1); got != 1 {
						return fmt.Errorf("Behind(1) is %d, although rank %d has sent rank 1 something and that does not go on", got, got)
					}
				case 1:
					lane.WaitFor(2)
					if err := r.takeOne(2, func() error {
						if where == 0 {
							return stop()
						}
						return nil
					}); err != nil {
						return err
					}
					switch where {
					case 1:
						return stop()
					case 2:
						var err error
						lane.Rest(func() bool { err = stop(); return true }, false)
						return err
					}
				case 2:
					if err := w.await(rests.opened); err != nil {
						return err
					}
					if _, ok, err := lane.TryPut(1, &transport.Message{Bytes: make([]byte, 16), Total: 16}); !ok || err != nil {
						return fmt.Errorf("TryPut of the first message: ok %v, error %w", ok, err)
					}
					return w.await(checked.opened)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeOne rests until there is a part from a rank, and takes it after it has called viewed.
func (r *rank) takeOne(from int, viewed func() error) (err error) {
	lane, taken := r.P2P(), false
	for !taken && err == nil {
		if r.w.stopping() {
			return errStopped
		}
		lane.Rest(func() bool {
			var ok bool
			if _, ok, err = lane.TryNext(from); ok {
				taken, err = true, viewed()
				lane.Take(from)
			}
			return taken || err != nil
		}, true)
	}
	return err
}

// untilBehind waits until Behind(peer) is what it should be, since ranks rest.
func (r *rank) untilBehind(peer, want int) error {
	for r.P2P().Behind(peer) != want {
		if r.w.stopping() {
			return errStopped
		}
		r.yield()
	}
	return nil
}
