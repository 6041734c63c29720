package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/goccl/goccl/transport"
)

// nextArrival begins the next call. All ranks' arrivals agree unless badHash is set.
func (r *rank) nextArrival() *transport.Arrival {
	r.seq++
	return &transport.Arrival{
		Ctx:         r.ctx,
		Seq:         r.seq,
		Hash:        mix(r.seq) + r.badHash,
		Fingerprint: fingerprintOf(r.number, r.seq),
		NoSpin:      r.noSpin,
	}
}

// fingerprintOf makes fingerprints that differ between ranks. A transport compares
// hashes; fingerprints are mere bytes to it.
func fingerprintOf(rank int, seq uint64) transport.Fingerprint {
	return transport.Fingerprint{seq, uint64(rank), mix(seq), ^seq, mix(seq + uint64(rank))}
}

// enter makes a call without AnyRunner, up to where its body would begin.
func (r *rank) enter(e *transport.Arrival) {
	role, err := r.Enter(e)
	failIfIn(err, "Enter of call %d", e.Seq)
	r.checkRole(e, role)
}

func (r *rank) checkRole(e *transport.Arrival, role transport.Role) {
	if role > transport.RunNone || role != transport.RunOwn && !e.AnyRunner {
		fail("Enter of call %d (AnyRunner %v) returned role %d", e.Seq, e.AnyRunner, role)
	}
}

func (r *rank) makeCalls(calls int) {
	for range calls {
		r.enter(r.nextArrival())
	}
}

// completeCall ends a call that was Exposed.
func (r *rank) completeCall() { failIfIn(r.Complete(), "Complete of call %d", r.seq) }

// makeCall makes call e as the engine does. body does the part of the rank that it gets,
// by that rank's endpoint; with AnyRunner any rank may run it.
func (r *rank) makeCall(e *transport.Arrival, body func(b *rank)) error {
	role, err := r.Enter(e)
	if err != nil {
		return r.giveUp(e, fmt.Errorf("Enter of call %d: %w", e.Seq, err))
	}
	r.checkRole(e, role)
	switch role {
	case transport.RunNone:
		return nil
	case transport.RunClaimed:
		return r.runClaimed(e, body)
	}
	if err := catchFailure(func() { body(r) }); err != nil {
		_ = r.giveUp(e, err) // err stands, whatever Withdraw returns
		return err
	}
	if e.Exposed {
		if err := r.Complete(); err != nil {
			return r.giveUp(e, fmt.Errorf("Complete of call %d: %w", e.Seq, err))
		}
	}
	return nil
}

// displsOf are the displacements that a rank brings to a call, if to any.
func displsOf(rank int, seq uint64) []int { return []int{rank, int(seq)} }

func (r *rank) runClaimed(e *transport.Arrival, body func(b *rank)) error {
	for b, ok := r.Claim(); ok; b, ok = r.Claim() {
		err := catchFailure(func() {
			if b < 0 || b >= r.size {
				fail("call %d: Claim returned rank %d of %d", e.Seq, b, r.size)
			}

			if e.Displs != nil && r.Memory() != nil {
				if displs, want := r.Memory().Displs(b), displsOf(b, e.Seq); !slices.Equal(displs, want) {
					fail("call %d: rank %d's body gets displacements %v instead of %v", e.Seq, b, displs, want)
				}
			}
			body(r.group.ranks[b])
		})
		if err != nil {
			r.Fail(failureOf(r.number, e.Seq, err))
			_ = r.Release(true)
			_ = r.giveUp(e, err) // err stands, whatever Release and Withdraw return
			return err
		}
	}
	if err := r.Release(false); err != nil {
		return r.giveUp(e, fmt.Errorf("Release of call %d: %w", e.Seq, err))
	}
	return nil
}

// giveUp gives up call e after err. It returns err unless the call turns out to be
// complete.
func (r *rank) giveUp(e *transport.Arrival, err error) error {
	r.Fail(failureOf(r.number, e.Seq, err))
	if r.Withdraw() {
		return nil
	}
	return err
}

// failureOf is what a rank records when err has ended its call.
func failureOf(rank int, seq uint64, err error) *transport.Failure {
	f := &transport.Failure{Kind: transport.FailureAborted, By: rank, Seq: seq, Text: "the rank gave up", Cause: err}
	if e, ok := errors.AsType[*transport.PeerLostError](err); ok {
		f.Kind, f.Ranks = transport.FailurePeerLost, []int{e.Rank}
	}
	if e, ok := errors.AsType[*transport.RejectedError](err); ok {
		f.Kind, f.Seq, f.Ranks = transport.FailureRejected, e.Seq, e.Ranks
	}

	if _, ok := errors.AsType[*transport.MismatchError](err); ok {
		f.Kind = transport.FailureMismatch
	}
	if e, ok := errors.AsType[*transport.OverlapError](err); ok {
		f.Kind, f.Ranks = transport.FailureOverlap, e.Ranks
	}
	return f
}

// maxData is the longest data that the suite moves at once.
const maxData = 1 << 20

var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 2*maxData)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it always fills all of b
	return b
})

// data returns n bytes, at most maxData, that differ for each key. They are read-only.
func data(n int, key ...int) []byte {
	var at uint64
	for _, k := range key {
		at = mix(at + uint64(k))
	}
	at %= maxData
	return noise()[at : at+uint64(n) : at+uint64(n)]
}

// mix spreads numbers that lie close to each other.
func mix(x uint64) uint64 { return rand.NewPCG(x, 0).Uint64() }

func checkSame(got, want []byte, what string, args ...any) {
	if bytes.Equal(got, want) {
		return
	}
	what = fmt.Sprintf(what, args...)
	if len(got) != len(want) {
		fail("%s: %d bytes instead of %d", what, len(got), len(want))
	}

	for i, b := range got {
		if b != want[i] {
			fail("%s: byte %d of %d is %#02x instead of %#02x", what, i, len(want), b, want[i])
		}
	}
	fail("%s: a byte of %d was wrong for a moment: another rank writes there", what, len(want))
}

// expectError fails unless errors.Is finds want in err.
func expectError(err, want error) {
	if !errors.Is(err, want) {
		failUnexpected(err, "%q", want)
	}
}

// failUnexpected fails because err is not what was wanted. err may be nil.
func failUnexpected(err error, want string, args ...any) {
	want = fmt.Sprintf(want, args...)
	if err == nil {
		fail("no error instead of %s", want)
	}
	fail("%w, instead of %s", err, want)
}

// poison overwrites memory that belongs to its owner again.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}
