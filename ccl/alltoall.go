package ccl

import (
	"context"
	"fmt"
)

// AllToAll gives every rank its block of every input: block r of rank s's send goes to
// block s of rank r's recv. send and recv are of the same length on all ranks, a
// multiple of the number of ranks, which may be zero, and disjoint.
//
// Refused with *InvalidBufferSizeError or *InvalidArgumentError (overlap); fails with
// *CollectiveFailedError, after which recv is unspecified.
func AllToAll[T Element](ctx context.Context, c *Communicator, send, recv []T, opts ...CallOption) error {
	return c.allToAll(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), opts)
}

func (c *Communicator) allToAll(ctx context.Context, dtype DType, send, recv Buffer, opts []CallOption) error {
	const coll = CollAllToAll
	if err := c.begin(ctx, coll, opts); err != nil {
		return err
	}
	n := send.Len()
	switch {
	case recv.Len() != n:
		return c.refuse(&InvalidBufferSizeError{Operation: coll.String(), Buffer: "recv", Expected: n, Actual: recv.Len()})
	case n%c.size != 0:
		return c.refuse(&InvalidArgumentError{coll.String(), fmt.Sprintf("%d elements cannot be dealt out evenly to %d ranks; AllToAllV can", n, c.size)})
	case overlap(send.data, recv.data):
		return c.refuse(&InvalidArgumentError{coll.String(), "send and recv overlap; they must be disjoint"})
	}
	r := c.ask(coll, dtype, send, recv, opts)
	r.each = n / c.size
	if c.size == 1 {
		return c.alone(ctx, r, recv, send)
	}
	return c.run(ctx, r)
}

// AllToAllV is AllToAll with blocks of unlike lengths: rank r gets sendCounts[r]
// elements of send, from sendDispls[r] on, and what comes from rank s, recvCounts[s]
// elements, goes to recv[recvDispls[s]:]. Counts may be zero. nil displs mean packed;
// others may leave gaps, which stay untouched, and be in any order, which for those of
// send costs a copy. send and recv are disjoint.
//
// Ranks first tell each other all lengths; that takes a synchronisation more than
// AllToAll. If what one sends is not what another expects the call is refused on all,
// with *MismatchError, which names the first two. Otherwise its errors are those of
// AllToAll and AllGatherV.
func AllToAllV[T Element](ctx context.Context, c *Communicator, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int, opts ...CallOption) error {
	return c.allToAllV(ctx, DTypeOf[T](), bufferOf(send), sendCounts, sendDispls, bufferOf(recv), recvCounts, recvDispls, opts)
}

func (c *Communicator) allToAllV(ctx context.Context, dtype DType, send Buffer, sendCounts, sendDispls []int, recv Buffer, recvCounts, recvDispls []int, opts []CallOption) error {
	const coll = collAllToAllLengths
	if err := c.begin(ctx, coll, opts); err != nil {
		return err
	}
	out := blocks{operation: coll.String(), counts: some(sendCounts), displs: sendDispls}
	in := blocks{operation: coll.String(), counts: some(recvCounts), displs: recvDispls}
	err := out.sum(c.size)
	if err == nil {
		err = out.fit("send", send.Len())
	}
	if err == nil {
		err = in.sum(c.size)
	}
	if err == nil {
		err = in.fit("recv", recv.Len())
	}
	if err == nil && overlap(send.data, recv.data) {
		err = &InvalidArgumentError{coll.String(), "send and recv overlap; they must be disjoint"}
	}
	if err != nil {
		return c.refuse(err)
	}
	if err := c.agreeOnMatrix(ctx, dtype, sendCounts, recvCounts, opts); err != nil {
		c.end()
		return err
	}
	r := c.ask(CollAllToAll, dtype, c.pack(send, &out), recv, opts)
	r.matrix, r.displs, r.begun = c.lengths.matrix, recvDispls, true
	var longestOut, longestIn int
	r.count, longestOut, longestIn = r.matrix.sums(c.size)
	r.bytes, r.total = longestOut<<send.shift, longestIn<<send.shift
	r.lengths = mix(uint64(r.count))
	if c.size == 1 {
		at := in.at(0)
		return c.alone(ctx, r, recv.Slice(at, at+in.total), r.in)
	}
	return c.run(ctx, r)
}
