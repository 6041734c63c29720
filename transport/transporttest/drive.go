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

// entry begins the next call with an entry that all ranks agree on, unless
// badHash says otherwise.
func (r *rank) entry() *transport.Arrival {
	r.seq++
	return &transport.Arrival{
		Ctx:         r.ctx,
		Seq:         r.seq,
		Hash:        mix(r.seq) + r.badHash,
		Fingerprint: printOf(r.me, r.seq),
		NoSpin:      r.patient,
	}
}

// printOf makes fingerprints that differ between ranks: to a transport they are
// just bytes, it compares hashes.
func printOf(rank int, seq uint64) transport.Fingerprint {
	return transport.Fingerprint{seq, uint64(rank), mix(seq), ^seq, mix(seq + uint64(rank))}
}

// enter makes a call that is not Shared, up to where its body would begin.
func (r *rank) enter(e *transport.Arrival) error {
	role, err := r.Enter(e)
	if err != nil {
		return fmt.Errorf("Enter of call %d: %w", e.Seq, err)
	}
	if role != transport.RunOwn {
		return fmt.Errorf("Enter of call %d, which is not Shared, answered role %d instead of Own", e.Seq, role)
	}
	return nil
}

// complete ends a call that was Exposed.
func (r *rank) complete() error {
	if err := r.Complete(); err != nil {
		return fmt.Errorf("Complete of call %d: %w", r.seq, err)
	}
	return nil
}

// call makes call e as the engine does. body does one rank's part, with that
// rank's endpoint; it is run by the rank itself, or in a Shared call by any.
func (r *rank) call(e *transport.Arrival, body func(b *rank) error) error {
	role, err := r.Enter(e)
	if err != nil {
		return r.leave(e, fmt.Errorf("Enter of call %d: %w", e.Seq, err))
	}
	switch {
	case role == transport.RunOwn:
		if err := body(r); err != nil {
			_ = r.leave(e, err) // err stands, whatever Withdraw says
			return err
		}
		if !e.Exposed {
			return nil
		}
		if err := r.complete(); err != nil {
			return r.leave(e, err)
		}
		return nil
	case !e.AnyRunner:
		return fmt.Errorf("Enter of call %d, which is not Shared, answered role %d instead of Own", e.Seq, role)
	case role == transport.RunClaimed:
		return r.everyone(e, body)
	case role == transport.RunNone:
		return nil
	}
	return fmt.Errorf("Enter of call %d answered role %d, which does not exist", e.Seq, role)
}

// everyone runs the bodies that Claim hands out.
func (r *rank) everyone(e *transport.Arrival, body func(b *rank) error) error {
	for {
		b, ok := r.Claim()
		if !ok {
			break
		}
		if b < 0 || b >= r.n {
			return fmt.Errorf("call %d: Claim handed out rank %d of %d", e.Seq, b, r.n)
		}
		if e.Displs != nil && r.Memory() != nil {
			if displs, want := r.Memory().Displs(b), []int{b, int(e.Seq)}; !slices.Equal(displs, want) {
				return fmt.Errorf("call %d: rank %d shows displacements %v instead of %v", e.Seq, b, displs, want)
			}
		}
		if err := body(r.w.ranks[b]); err != nil {
			r.Fail(failureOf(r.me, e.Seq, err))
			_ = r.Release(true)
			_ = r.leave(e, err) // err stands, whatever Release and Withdraw say
			return err
		}
	}
	if err := r.Release(false); err != nil {
		return r.leave(e, fmt.Errorf("Release of call %d: %w", e.Seq, err))
	}
	return nil
}

// leave gives up call e after err, and returns err unless the call turns out to
// be complete.
func (r *rank) leave(e *transport.Arrival, err error) error {
	r.Fail(failureOf(r.me, e.Seq, err))
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
	if e, ok := errors.AsType[*transport.RefusedError](err); ok {
		f.Kind, f.Seq, f.Ranks = transport.FailureRefused, e.Seq, e.Ranks
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
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it always fills all
	return b
})

// data returns n bytes, at most maxData, that are different for each key. Nobody
// writes them.
func data(n int, key ...int) []byte {
	var at uint64
	for _, k := range key {
		at = mix(at + uint64(k))
	}
	at %= maxData
	return noise()[at : at+uint64(n) : at+uint64(n)]
}

// mix makes numbers that lie close to each other lie far apart: it is the output
// function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// same returns an error if got is not want.
func same(got, want []byte, what string, args ...any) error {
	if bytes.Equal(got, want) {
		return nil
	}
	what = fmt.Sprintf(what, args...)
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d bytes instead of %d", what, len(got), len(want))
	}
	i := 0
	for got[i] == want[i] {
		i++
	}
	return fmt.Errorf("%s: byte %d of %d is %#02x instead of %#02x", what, i, len(want), got[i], want[i])
}

// wrong complains about err, which is nil or not the right one.
func wrong(err error, want string, args ...any) error {
	want = fmt.Sprintf(want, args...)
	if err == nil {
		return fmt.Errorf("no error instead of %s", want)
	}
	return fmt.Errorf("%w, instead of %s", err, want)
}

// poison overwrites memory that is its owner's again.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}
