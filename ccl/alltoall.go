package ccl

import (
	"cmp"
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
)

// AllToAll gives every rank its block of every input: block r of rank s's send goes to block s of
// rank r's recv. send and recv have the same length on all ranks, a multiple of the number of
// ranks, which may be 0. They are disjoint.
//
// Rejected with *InvalidBufferSizeError or *InvalidArgumentError (overlap). Fails with
// *CollectiveFailedError; recv is then unspecified.
func AllToAll[T Element](ctx context.Context, c *Communicator, send, recv []T, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollAllToAll, dtype: DTypeOf[T](), send: bufferOf(send), recv: bufferOf(recv),
	}, nil, opts)
}

// AllToAllV is AllToAll with blocks of different lengths: rank r gets sendCounts[r] elements of
// send, from sendDispls[r] on; the recvCounts[s] elements from rank s go to recv[recvDispls[s]:].
//
// Counts may be 0. nil displs mean packed. Explicit displs may leave gaps, which are not changed,
// and be in any order; for send that costs a copy. send and recv are disjoint.
//
// Ranks first exchange all lengths, which takes one synchronisation more than AllToAll. If what one
// rank sends is not what another expects, all ranks reject the call with *MismatchError, which
// names the first two such ranks. The other errors are those of AllToAll and AllGatherV.
func AllToAllV[T Element](ctx context.Context, c *Communicator, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: collAllToAllLengths, dtype: DTypeOf[T](), send: bufferOf(send), recv: bufferOf(recv),
	}, &lists{notNil(sendCounts), sendDispls, notNil(recvCounts), recvDispls, nil}, opts)
}

func (e *engine) allToAll(ctx context.Context, a *arguments, opts []CallOption) error {
	n := a.send.Len()

	var err error
	switch {
	case a.recv.Len() != n:
		err = &InvalidBufferSizeError{Operation: a.coll.String(), Buffer: namesOf(a.coll, opts).recv, Expected: n, Actual: a.recv.Len()}
	case n%e.size != 0:
		err = &InvalidArgumentError{a.coll.String(), fmt.Sprintf("%d elements cannot be dealt out evenly to %d ranks; AllToAllV can", n, e.size)}
	default:
		err = a.checkDisjoint(opts)
	}
	if err != nil {
		return e.rejectCall(a, opts, err)
	}

	r := e.ask(a.coll, a.dtype, a.send, a.recv, opts)
	r.each = n / e.size
	return e.step(ctx, r)
}

func (e *engine) allToAllV(ctx context.Context, a *arguments, l *lists, opts []CallOption) error {
	names, operation := namesOf(a.coll, opts), a.coll.String()
	out := blocks{operation: operation, of: names.send, counts: l.counts, displs: l.displs}
	in := blocks{operation: operation, of: names.recv, counts: l.recvCounts, displs: l.recvDispls}
	err := cmp.Or(out.check(e.size, a.send.Len()), in.check(e.size, a.recv.Len()), a.checkDisjoint(opts))
	if err != nil {
		return e.rejectCall(a, opts, err)
	}
	if err := e.agreeOnMatrix(ctx, a, l, opts); err != nil {
		return err
	}

	r := e.ask(CollAllToAll, a.dtype, e.pack(a.send, &out), a.recv, opts)
	r.matrix, r.displs, r.isJoined = e.scratch.lengths.matrix, l.recvDispls, true
	var longestOut, longestIn int
	r.count, longestOut, longestIn = r.matrix.Sums(e.size)
	r.bytes, r.total = longestOut<<a.send.shift, longestIn<<a.send.shift
	r.lengths = fingerprint.Mix(uint64(r.count))
	return e.step(ctx, r)
}

// checkDisjoint checks that send and recv do not overlap.
func (a *arguments) checkDisjoint(opts []CallOption) error {
	if overlap(a.send.data, a.recv.data) {
		return overlapError(a.coll.String(), namesOf(a.coll, opts), "disjoint")
	}
	return nil
}
