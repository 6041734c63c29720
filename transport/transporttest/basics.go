package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/transport"
)

func identity(h *harness, n int) {
	h.runGroup(func(g *group) {
		first := g.ranks[0].Endpoint
		g.run(func(r *rank) {
			for range 2 { // before and after a call
				switch limit := r.PayloadLimit(); {
				case r.Rank() != r.number || r.Size() != n:
					fail("endpoint %d returns rank %d of %d", r.number, r.Rank(), r.Size())
				case r.Name() == "" || r.Name() != first.Name():
					fail("Name is %q, and %q on rank 0", r.Name(), first.Name())
				case limit != first.PayloadLimit() || limit < 0 || limit > 0 && limit < transport.InlineBytes:
					fail("PayloadLimit is %d, and %d on rank 0", limit, first.PayloadLimit())

				case (r.Memory() == nil) == (r.Staging() == nil):
					fail("Memory and Staging are both nil, or neither is")
				case (r.Memory() == nil) != (first.Memory() == nil):
					fail("Memory is nil on some ranks only")
				case r.Failed() || r.Failure() != nil:
					fail("a new group has failed")
				}

				for q := range n {
					if q != r.number {
						failIfIn(r.P2P().Lost(q), "Lost(%d) in a new group", q)
					}
				}
				r.makeCalls(1)
			}
			r.makeCalls(1) // no rank closes while others look
		})
	})
}

// conclude lets ranks conclude opposite verdicts.
func conclude(h *harness, n int) {
	for first := range n {
		h.runGroup(func(g *group) {
			formed := first%2 == 0
			if got := g.ranks[first].Conclude(formed); got != formed {
				fail("rank %d is the first to conclude, with %v, and gets %v", first, formed, got)
			}

			g.run(func(r *rank) {
				for _, verdict := range []bool{!formed, formed, !formed} {
					if got := r.Conclude(verdict); got != formed {
						fail("Conclude(%v) returned %v, but rank %d concluded %v first", verdict, got, first, formed)
					}
				}
			})
		})
	}
}

// groups lets every goroutine be the same rank of two groups.
func groups(h *harness, n int) {
	h.runGroup(func(a *group) {
		h.runGroup(func(b *group) {
			a.run(func(r *rank) {
				other := b.ranks[r.number]
				failIf(other.runOrFail(func() {
					for i := range 200 {
						r.makePayloadCall(func(q int) int { return 8 + q })
						if i == 100 && r.number == 0 {
							other.Fail(&transport.Failure{Kind: transport.FailureAborted, Text: "only the second group fails"})
						}

						if i < 100 {
							other.makePayloadCall(func(q int) int { return 16 - q })
						}
					}

					if r.Failed() {
						fail("the failure of one group has reached the other")
					}
				}))
			})
		})
	})
}

// runOrFail runs f, and makes this rank's group fail if f fails.
func (r *rank) runOrFail(f func()) error {
	err := catchFailure(f)
	if err != nil {
		r.Fail(failureOf(r.number, r.seq, err))
	}
	return err
}

// syncCalls counts calls beside the calls.
func syncCalls(h *harness, n int) {
	// By parity: a rank writes its element for call s+2 only after all have entered
	// s+1, and so have read it for s.
	arrived := [2][]uint64{make([]uint64, n), make([]uint64, n)}
	h.run(func(r *rank) {
		for range 2000 {
			e := r.nextArrival()
			arrived[e.Seq%2][r.number] = e.Seq
			r.enter(e)
			for q, s := range arrived[e.Seq%2] {
				if s != e.Seq {
					fail("Enter of call %d returned while rank %d was at call %d", e.Seq, q, s)
				}
			}

			r.yield()
		}
	})
}

// payloadLimit is the length up to which payloads are tried.
func (r *rank) payloadLimit() int { return min(r.PayloadLimit(), maxData) }

func payloadSizes(h *harness, n int) {
	h.run(func(r *rank) {
		limit := r.payloadLimit()
		sizes := []int{0, 1, 7, 8, transport.InlineBytes - 1, transport.InlineBytes,
			min(transport.InlineBytes+1, limit), (transport.InlineBytes + limit) / 2, limit - 1, limit}
		for i := range 20 * len(sizes) {
			r.makePayloadCall(func(q int) int { return max(0, min(sizes[(i+i%2*3*q)%len(sizes)], limit)) })
		}
	})
}

func payloadMixed(h *harness, n int) {
	h.run(func(r *rank) {
		for i := range 400 {
			what := mix(uint64(i))
			e := r.nextArrival()
			e.Exposed = what&1 != 0
			length := 0
			if limit := r.payloadLimit(); what&2 != 0 && limit > 0 {
				length = int(what>>8%uint64(limit)) + 1
			}
			r.enterWithPayload(e, func(int) int { return length })
		}
	})
}

// makePayloadCall makes a call to which rank q brings length(q) bytes.
func (r *rank) makePayloadCall(length func(q int) int) { r.enterWithPayload(r.nextArrival(), length) }

func (r *rank) enterWithPayload(e *transport.Arrival, length func(q int) int) {
	payload := bytes.Clone(data(length(r.number), r.number, int(e.Seq)))
	e.Payload = payload
	r.enter(e)
	poison(payload) // Enter has copied it
	r.checkPayloads(e.Seq, length, "right after Enter")
	if e.Exposed {
		r.completeCall()
	}
	r.yield()
	r.checkPayloads(e.Seq, length, "before the next call")
}

func (r *rank) checkPayloads(seq uint64, length func(q int) int, when string) {
	for q := range r.size {
		full := length(q)
		want := data(full, q, int(seq))
		for _, n := range [...]int{full, full / 2} {
			checkSame(r.Payload(q, n), want[:n], "%s, call %d: Payload(%d, %d) of %d", when, seq, q, n, full)
		}
	}
}

func fingerprints(h *harness, n int) {
	h.run(func(r *rank) {
		for range 200 {
			e := r.nextArrival()
			if e.Seq%7 == 0 {
				e.Hash = 0
			}

			r.enter(e)
			for range 2 {
				r.checkFingerprints(e.Seq)
				r.yield()
			}
		}
	})
}

func (r *rank) checkFingerprints(seq uint64) {
	for q := range r.size {
		if p := r.Fingerprint(q); p != fingerprintOf(q, seq) {
			fail("call %d: Fingerprint(%d) is %x instead of %x", seq, q, p, fingerprintOf(q, seq))
		}
	}
}

func mismatch(h *harness, n int) {
	for trial := range 4 * n {
		odd, exposed, hasty := trial%n, trial/n&1 != 0, trial/n&2 != 0
		all := newGate(n)
		h.runTitled(fmt.Sprintf("rank %d brings another hash (Exposed %v)", odd, exposed), func(r *rank) {
			r.makeCalls(trial % 3)
			r.enterMismatch(odd, exposed, hasty)
			r.passAndAwait(all)
			if r.Fail(failureOf(r.number, r.seq, &transport.MismatchError{Seq: r.seq})).Kind != transport.FailureMismatch {
				fail("the recorded failure is not a mismatch")
			}

			r.Withdraw()
		})
	}
}

// enterMismatch makes a call to which rank odd brings another hash. A hasty rank makes the
// group fail before others may have noticed.
func (r *rank) enterMismatch(odd int, exposed, hasty bool) {
	e := r.nextArrival()
	if r.number == odd {
		e.Hash++
	}
	e.Exposed, e.AnyRunner = exposed, exposed
	e.Send, e.Recv = bytes.Clone(data(64, r.number)), bytes.Clone(data(64, -r.number))
	r.pause()
	_, err := r.Enter(e)
	if hasty {
		r.Fail(failureOf(r.number, e.Seq, err))
	}
	// In an Exposed call an earlier failure wins over all ranks having entered.
	early := exposed && hasty && errors.Is(err, transport.ErrFailed)
	if m, ok := errors.AsType[*transport.MismatchError](err); !early && (!ok || m.Seq != e.Seq) {
		failUnexpected(err, "*MismatchError of call %d", e.Seq)
	}
	r.checkFingerprints(e.Seq)
	checkSame(e.Send, data(64, r.number), "Send after a mismatch")
	checkSame(e.Recv, data(64, -r.number), "Recv after a mismatch")
}

func overlap(h *harness, n int) {
	for trial := range 8 * n {
		odd, exposed, reads, payload := trial%n, trial/n&1 != 0, trial/n&2 != 0, trial/n&4 != 0
		what := fmt.Sprintf("ranks %d and %d bring the same memory (Exposed %v, one reads %v, long payload %v)",
			odd, (odd+1)%n, exposed, reads, payload)
		h.runTitled(what, func(r *rank) {
			if r.Memory() == nil {
				return
			}

			length := 0
			if payload && r.payloadLimit() > transport.InlineBytes {
				length = transport.InlineBytes + 1
			}
			r.enterOverlap(odd, exposed, reads, length)
		})
	}
}

// enterOverlap makes calls in which the ranks bring memory of their own, all read the same, or
// bring none; and then one to which rank odd brings what the next rank writes. All calls have a
// payload of that length.
func (r *rank) enterOverlap(odd int, exposed, reads bool, length int) {
	spanOf := func(q int) transport.Span {
		at := uint64(1<<20 + 100*q)
		return transport.Span{Lo: at, Hi: at + 100} // they touch
	}
	common := transport.Span{Lo: 1 << 30, Hi: 1<<30 + 100}
	for range 2 {
		for _, m := range []struct{ reads, writes transport.Span }{{common, spanOf(r.number)}, {spanOf(r.number), transport.Span{}}, {common, transport.Span{}}} {
			e := r.nextArrival()
			e.Reads, e.Writes = m.reads, m.writes
			e.Exposed = exposed
			r.enterWithPayload(e, func(int) int { return length })
		}
	}

	e := r.nextArrival()
	next := (odd + 1) % r.size
	e.Exposed, e.Writes, e.Payload = exposed, spanOf(r.number), data(length, r.number)
	if r.number == odd {
		theirs := transport.Span{Lo: spanOf(next).Hi - 1, Hi: spanOf(next).Hi}
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
		failUnexpected(err, "*OverlapError of call %d with ranks %v", e.Seq, both)
	}
}
