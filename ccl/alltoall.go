package ccl

import (
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
	return c.allToAll(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), opts)
}

func (c *Communicator) allToAll(ctx context.Context, dtype DType, send, recv Buffer, opts []CallOption) error {
	const coll = CollAllToAll
	if err := c.start(ctx, coll, opts); err != nil {
		return err
	}
	n := send.Len()
	var err error
	switch {
	case recv.Len() != n:
		err = &InvalidBufferSizeError{Operation: coll.String(), Buffer: namesOf(coll, opts).recv, Expected: n, Actual: recv.Len()}
	case n%c.size != 0:
		err = &InvalidArgumentError{coll.String(), fmt.Sprintf("%d elements cannot be dealt out evenly to %d ranks; AllToAllV can", n, c.size)}
	case overlap(send.data, recv.data):
		err = overlapError(coll.String(), namesOf(coll, opts), "disjoint")
	}
	if err != nil {
		return c.reject(coll, dtype, send, recv, opts, err)
	}
	r := c.ask(coll, dtype, send, recv, opts)
	r.each = n / c.size
	return c.run(ctx, r)
}

// AllToAllV is AllToAll with blocks of different lengths: rank r gets sendCounts[r] elements of
// send, from sendDispls[r] on; the recvCounts[s] elements from rank s go to recv[recvDispls[s]:].
// Counts may be 0. nil displs mean packed. Explicit displs may leave gaps, which are not changed,
// and be in any order; for send that costs a copy. send and recv are disjoint.
//
// Ranks first exchange all lengths, which takes one synchronisation more than AllToAll. If what
// one rank sends is not what another expects, all ranks reject the call with *MismatchError,
// which names the first two such ranks. The other errors are the same as of AllToAll
// and AllGatherV.
func AllToAllV[T Element](ctx context.Context, c *Communicator, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int, opts ...CallOption) error {
	return c.allToAllV(ctx, DTypeOf[T](), bufferOf(send), sendCounts, sendDispls, bufferOf(recv), recvCounts, recvDispls, opts)
}

func (c *Communicator) allToAllV(ctx context.Context, dtype DType, send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int, opts []CallOption) error {
	const coll = collAllToAllLengths
	if err := c.start(ctx, coll, opts); err != nil {
		return err
	}
	names := namesOf(coll, opts)
	out := blocks{operation: coll.String(), of: names.send, counts: notNil(sendCounts), displs: sendDispls}
	in := blocks{operation: coll.String(), of: names.recv, counts: notNil(recvCounts), displs: recvDispls}
	err := out.sum(c.size)
	if err == nil {
		err = out.fit(names.send, send.Len())
	}
	if err == nil {
		err = in.sum(c.size)
	}
	if err == nil {
		err = in.fit(names.recv, recv.Len())
	}
	if err == nil && overlap(send.data, recv.data) {
		err = overlapError(coll.String(), names, "disjoint")
	}
	if err != nil {
		return c.reject(coll, dtype, send, recv, opts, err)
	}
	if err := c.agreeOnMatrix(ctx, dtype, sendCounts, recvCounts, opts); err != nil {
		return c.end(err)
	}
	r := c.ask(CollAllToAll, dtype, c.pack(send, &out), recv, opts)
	r.matrix, r.displs, r.met = c.lengths.matrix, recvDispls, true
	var longestOut, longestIn int
	r.count, longestOut, longestIn = r.matrix.Sums(c.size)
	r.bytes, r.total = longestOut<<send.shift, longestIn<<send.shift
	r.lengths = fingerprint.Mix(uint64(r.count))
	return c.run(ctx, r)
}
