package transporttest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/transport"
)

func identity(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		first := w.ranks[0].Endpoint
		return w.each(func(r *rank) error {
			for range 2 { // before and after a call
				switch limit := r.PayloadLimit(); {
				case r.Rank() != r.me || r.Size() != n:
					return fmt.Errorf("endpoint %d says that it is rank %d of %d", r.me, r.Rank(), r.Size())
				case r.Name() == "" || r.Name() != first.Name():
					return fmt.Errorf("Name is %q, and %q on rank 0", r.Name(), first.Name())
				case limit != first.PayloadLimit() || limit < 0 || limit > 0 && limit < transport.InlineBytes:
					return fmt.Errorf("PayloadLimit is %d, and %d on rank 0", limit, first.PayloadLimit())
				case (r.Memory() == nil) == (r.Staging() == nil):
					return errors.New("there are both Memory and Staging, or neither")
				case (r.Memory() == nil) != (first.Memory() == nil):
					return errors.New("there is Memory on some ranks only")
				case r.Failed() || r.Failure() != nil:
					return errors.New("a new group has failed")
				}
				if err := r.enter(r.entry()); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// conclude lets ranks of two minds decide, in several groups.
func conclude(h *harness, n int) error {
	for first := range n {
		err := h.world(n, 0, func(w *world) error {
			formed := first%2 == 0
			if got := w.ranks[first].Conclude(formed); got != formed {
				return fmt.Errorf("rank %d is the first to conclude %v, and hears %v", first, formed, got)
			}
			return w.each(func(r *rank) error {
				for _, said := range []bool{!formed, formed, !formed} {
					if got := r.Conclude(said); got != formed {
						return fmt.Errorf("rank %d says %v and hears %v, where rank %d was the first, with %v", r.me, said, got, first, formed)
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

// groups lets every goroutine be the same rank of two groups.
func groups(h *harness, n int) error {
	return h.world(n, 1, func(a *world) error {
		return h.world(n, 2, func(b *world) error {
			return a.each(func(r *rank) (err error) {
				other := b.ranks[r.me]
				defer func() {
					if err != nil { // the other group has ranks that wait, too
						other.Fail(failureOf(other.me, other.seq, err))
					}
				}()
				for i := range 200 {
					if err := r.payload(func(q int) int { return 8 + q }); err != nil {
						return fmt.Errorf("first group: %w", err)
					}
					if i == 100 && r.me == 0 {
						other.Fail(&transport.Failure{Kind: transport.FailureAborted, Text: "only the second group fails"})
					}
					if i < 100 {
						if err := other.payload(func(q int) int { return 16 - q }); err != nil {
							return fmt.Errorf("second group: %w", err)
						}
					}
				}
				if r.Failed() {
					return errors.New("the failure of one group has reached the other")
				}
				return nil
			})
		})
	})
}

// syncCalls counts calls beside the calls.
func syncCalls(h *harness, n int) error {
	const calls = 2000
	return h.world(n, 0, func(w *world) error {
		// By parity: a rank writes its place for call s+2 only after all have
		// entered s+1, and so have read it for s.
		var arrived [2][]uint64
		for p := range arrived {
			arrived[p] = make([]uint64, n)
		}
		return w.each(func(r *rank) error {
			for range calls {
				e := r.entry()
				arrived[e.Seq%2][r.me] = e.Seq
				if err := r.enter(e); err != nil {
					return err
				}
				for q, s := range arrived[e.Seq%2] {
					if s != e.Seq {
						return fmt.Errorf("Enter of call %d returned while rank %d was at call %d", e.Seq, q, s)
					}
				}
				r.yield()
			}
			return nil
		})
	})
}

// payloadLengths are around the length of a line's payload and the limit.
func payloadLengths(limit int) []int {
	return []int{0, 1, 7, 8, transport.InlineBytes - 1, transport.InlineBytes,
		min(transport.InlineBytes+1, limit), (transport.InlineBytes + limit) / 2, limit - 1, limit}
}

// payloads reports whether the transport carries payloads, and logs if not.
func (w *world) payloads(h *harness) bool {
	if w.ranks[0].PayloadLimit() == 0 {
		h.logf("PayloadLimit is 0: no payloads travel")
		return false
	}
	return true
}

func payloadSizes(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		if !w.payloads(h) {
			return nil
		}
		sizes := payloadLengths(min(w.ranks[0].PayloadLimit(), maxData))
		return w.each(func(r *rank) error {
			for i := range 20 * len(sizes) {
				of := func(q int) int { return sizes[i%len(sizes)] }
				if i%2 == 1 { // another length on each rank
					of = func(q int) int { return sizes[(i+3*q)%len(sizes)] }
				}
				if err := r.payload(of); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func payloadMixed(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		if !w.payloads(h) {
			return nil
		}
		limit := min(w.ranks[0].PayloadLimit(), maxData)
		return w.each(func(r *rank) error {
			for i := range 400 {
				what := mix(uint64(i))
				e := r.entry()
				e.Exposed = what&1 != 0
				length := func(q int) int { return 0 }
				if what&2 != 0 {
					length = func(q int) int { return int(what>>8%uint64(limit)) + 1 }
				}
				if err := r.payloadCall(e, length); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// payload makes a call to which rank q brings length(q) bytes.
func (r *rank) payload(length func(q int) int) error {
	return r.payloadCall(r.entry(), length)
}

func (r *rank) payloadCall(e *transport.Arrival, length func(q int) int) error {
	mine := append([]byte(nil), data(length(r.me), r.me, int(e.Seq))...)
	e.Payload = mine
	if err := r.enter(e); err != nil {
		return err
	}
	poison(mine) // it has travelled: the caller's memory is the caller's again
	if err := r.checkPayloads(e.Seq, length); err != nil {
		return fmt.Errorf("right after Enter: %w", err)
	}
	if e.Exposed {
		if err := r.complete(); err != nil {
			return err
		}
	}
	r.yield()
	if err := r.checkPayloads(e.Seq, length); err != nil {
		return fmt.Errorf("before the next call: %w", err)
	}
	return nil
}

func (r *rank) checkPayloads(seq uint64, length func(q int) int) error {
	for q := range r.n {
		full := length(q)
		want := data(full, q, int(seq))
		for _, n := range [...]int{full, full / 2} {
			if err := same(r.Payload(q, n), want[:n], "call %d: Payload(%d, %d) of %d", seq, q, n, full); err != nil {
				return err
			}
		}
	}
	return nil
}

func prints(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		return w.each(func(r *rank) error {
			for range 200 {
				e := r.entry()
				if e.Seq%7 == 0 {
					e.Hash = 0
				}
				if err := r.enter(e); err != nil {
					return err
				}
				for range 2 {
					if err := r.checkPrints(e.Seq); err != nil {
						return err
					}
					r.yield()
				}
			}
			return nil
		})
	})
}

func (r *rank) checkPrints(seq uint64) error {
	for q := range r.n {
		if p := r.Fingerprint(q); p != printOf(q, seq) {
			return fmt.Errorf("call %d: Print(%d) is %x instead of %x", seq, q, p, printOf(q, seq))
		}
	}
	return nil
}

func mismatch(h *harness, n int) error {
	for trial := range 4 * n {
		odd, exposed, hasty := trial%n, trial/n&1 != 0, trial/n&2 != 0
		err := h.world(n, uint64(trial), func(w *world) error {
			err := w.each(func(r *rank) error {
				for range trial % 3 {
					if err := r.enter(r.entry()); err != nil {
						return err
					}
				}
				return r.mismatch(odd, exposed, hasty)
			})
			if err != nil {
				return err
			}
			return w.each(func(r *rank) error {
				if r.Fail(failureOf(r.me, r.seq, &transport.MismatchError{Seq: r.seq})).Kind != transport.FailureMismatch {
					return errors.New("the recorded failure is not a mismatch")
				}
				r.Withdraw()
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("rank %d brings another hash (exposed %v): %w", odd, exposed, err)
		}
	}
	return nil
}

// mismatch makes a call to which rank odd brings another hash. A hasty rank
// makes the group fail before others may have seen it.
func (r *rank) mismatch(odd int, exposed, hasty bool) error {
	e := r.entry()
	if r.me == odd {
		e.Hash++
	}
	e.Exposed, e.AnyRunner = exposed, exposed
	e.Send, e.Recv = append([]byte(nil), data(64, r.me)...), append([]byte(nil), data(64, -r.me)...)
	r.pause()
	_, err := r.Enter(e)
	if hasty {
		r.Fail(failureOf(r.me, e.Seq, err))
	}
	// Where memory is exposed, failure beats having reached all.
	early := exposed && hasty && errors.Is(err, transport.ErrFailed)
	if m, ok := errors.AsType[*transport.MismatchError](err); !early && (!ok || m.Seq != e.Seq) {
		return fmt.Errorf("Enter of call %d: %w", e.Seq, wrong(err, "*MismatchError with this number"))
	}
	if err := r.checkPrints(e.Seq); err != nil {
		return err
	}
	if err := same(e.Send, data(64, r.me), "Send after a mismatch"); err != nil {
		return err
	}
	return same(e.Recv, data(64, -r.me), "Recv after a mismatch")
}

func overlap(h *harness, n int) error {
	for trial := range 4 * n {
		odd, exposed, reads := trial%n, trial/n&1 != 0, trial/n&2 != 0
		err := h.world(n, uint64(trial), func(w *world) error {
			if w.ranks[0].Memory() == nil {
				h.logf("ranks do not share memory")
				return nil
			}
			return w.each(func(r *rank) error { return r.overlap(odd, exposed, reads) })
		})
		if err != nil {
			return fmt.Errorf("ranks %d and %d bring the same memory (exposed %v, read by one %v): %w", odd, (odd+1)%n, exposed, reads, err)
		}
	}
	return nil
}

// overlap makes calls in which ranks have memory of their own, or all read the same, or
// have nothing; and then one to which rank odd brings what the next one writes.
func (r *rank) overlap(odd int, exposed, reads bool) error {
	own := func(q int) transport.Span {
		at := uint64(1<<20 + 100*q)
		return transport.Span{Lo: at, Hi: at + 100} // they touch
	}
	same := transport.Span{Lo: 1 << 30, Hi: 1<<30 + 100}
	for range 2 {
		for _, m := range []struct{ reads, writes transport.Span }{{same, own(r.me)}, {own(r.me), transport.Span{}}, {same, transport.Span{}}} {
			e := r.entry()
			e.Exposed, e.Reads, e.Writes = exposed, m.reads, m.writes
			if err := r.enter(e); err != nil {
				return err
			}
			if !exposed {
				continue
			}
			if err := r.complete(); err != nil {
				return err
			}
		}
	}
	e := r.entry()
	next := (odd + 1) % r.n
	e.Exposed, e.Writes = exposed, own(r.me)
	if r.me == odd {
		theirs := transport.Span{Lo: own(next).Hi - 1, Hi: own(next).Hi}
		if reads {
			e.Reads = theirs
		} else {
			e.Writes = theirs
		}
	}
	r.pause()
	_, err := r.Enter(e)
	both := []int{min(odd, next), max(odd, next)}
	if o, ok := errors.AsType[*transport.OverlapError](err); !ok || o.Seq != e.Seq || !slices.Equal(o.Ranks, both) {
		return fmt.Errorf("Enter of call %d: %w", e.Seq, wrong(err, "*OverlapError with this number and the ranks %v", both))
	}
	return nil
}
