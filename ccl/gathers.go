package ccl

import (
	"context"
	"fmt"
)

// AllGather gives every rank the inputs of all: rank r's send goes to
// recv[r*len(send):]. send has the same length, which may be zero, on all ranks, and
// recv is as many times as long as there are ranks. send is disjoint from recv or
// exactly this rank's place in it.
//
// Note the order of the arguments: send, recv, as in MPI; package dist has torch's.
//
// Refused with *InvalidBufferSizeError or *InvalidArgumentError (overlap); fails with
// *CollectiveFailedError, after which recv is unspecified.
func AllGather[T Element](ctx context.Context, c *Communicator, send, recv []T, opts ...CallOption) error {
	return c.allGather(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), nil, nil, opts)
}

// AllGatherV is AllGather with inputs of unlike lengths: rank r's send, of counts[r]
// elements, goes to recv[displs[r]:]. counts is the same on all ranks; displs, which
// ranks may choose for themselves, may leave gaps, which stay untouched, and be in any
// order; nil means packed. send is disjoint from recv or exactly this rank's place in
// it. Counts may be zero.
//
// Refused with *InvalidBufferSizeError or *InvalidArgumentError (negative counts,
// places that overlap); fails with *CollectiveFailedError, after which recv is
// unspecified.
func AllGatherV[T Element](ctx context.Context, c *Communicator, send, recv []T, counts, displs []int, opts ...CallOption) error {
	return c.allGather(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), some(counts), displs, opts)
}

func (c *Communicator) allGather(ctx context.Context, dtype DType, send, recv Buffer, counts, displs []int, opts []CallOption) error {
	if err := c.begin(CollAllGather, opts); err != nil {
		return err
	}
	b := blocks{operation: CollAllGather.String(), each: send.Len(), counts: counts, displs: displs}
	if err := c.checkGather(&b, send, recv); err != nil {
		return c.refuse(err)
	}
	r := c.ask(CollAllGather, dtype, send, recv, opts)
	b.put(r)
	r.displs = displs
	r.bytes, r.total = b.longest<<recv.shift, b.total<<recv.shift
	if c.size == 1 {
		at := b.at(0)
		return c.alone(ctx, r, recv.Slice(at, at+send.Len()), send)
	}
	return c.run(ctx, r)
}

// checkGather checks a gather of blocks where recv has them all.
func (c *Communicator) checkGather(b *blocks, send, recv Buffer) error {
	if err := b.sum(c.size); err != nil {
		return err
	}
	if n := b.count(c.rank); send.Len() != n {
		return b.wrong("send", n, send.Len())
	}
	if err := b.fit("recv", recv.Len()); err != nil {
		return err
	}
	if b.counts == nil && recv.Len() != b.total {
		return b.wrong("recv", b.total, recv.Len())
	}
	if !within(send, recv, b.at(c.rank)) {
		return &InvalidArgumentError{b.operation, "send overlaps recv, but is not this rank's place in it"}
	}
	return nil
}

// Gather gives root the inputs of all: rank r's send goes to root's
// recv[r*len(send):]. send has the same length, which may be zero, on all ranks;
// root's recv is as many times as long as there are ranks, and that of others empty.
// Root's send is disjoint from recv or exactly its place in it.
//
// Refused with *InvalidBufferSizeError, *InvalidRootError or *InvalidArgumentError
// (overlap); fails with *CollectiveFailedError, after which root's recv is
// unspecified.
func Gather[T Element](ctx context.Context, c *Communicator, send, recv []T, root int, opts ...CallOption) error {
	return c.gather(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), root, opts)
}

func (c *Communicator) gather(ctx context.Context, dtype DType, send, recv Buffer, root int, opts []CallOption) error {
	if err := c.begin(CollGather, opts); err != nil {
		return err
	}
	b := blocks{operation: CollGather.String(), each: send.Len()}
	err := c.checkRoot(root)
	switch {
	case err != nil:
	case c.rank == root:
		err = c.checkGather(&b, send, recv)
	case recv.Len() > 0:
		err = b.wrong("recv", 0, recv.Len())
	default:
		err = b.sum(c.size)
	}
	if err != nil {
		return c.refuse(err)
	}
	r := c.ask(CollGather, dtype, send, recv, opts)
	return c.gatherBlocks(ctx, r, &b, root)
}

// gatherBlocks makes the call of a gather that has been checked.
func (c *Communicator) gatherBlocks(ctx context.Context, r *request, b *blocks, root int) error {
	b.put(r)
	r.root, r.displs = root, b.displs
	r.bytes, r.total = b.longest<<r.in.shift, b.total<<r.in.shift
	if c.size == 1 {
		at := b.at(0)
		return c.alone(ctx, r, r.out.Slice(at, at+r.in.Len()), r.in)
	}
	return c.run(ctx, r)
}

// GatherV is Gather with inputs of unlike lengths, which root alone has to know: rank
// r's send, of counts[r] elements, goes to root's recv[displs[r]:]. displs may leave
// gaps, which stay untouched, and be in any order; nil means packed. On other ranks
// recv is empty, and counts and displs are nil.
//
// Ranks first tell each other the lengths; that takes a synchronisation more than
// Gather. If root's counts are not what ranks bring the call is refused on all, with
// *MismatchError. Otherwise its errors are those of Gather and AllGatherV.
func GatherV[T Element](ctx context.Context, c *Communicator, send, recv []T, counts, displs []int, root int, opts ...CallOption) error {
	return c.gatherV(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), counts, displs, root, opts)
}

func (c *Communicator) gatherV(ctx context.Context, dtype DType, send, recv Buffer, counts, displs []int, root int, opts []CallOption) error {
	const coll = collGatherLengths
	if err := c.begin(coll, opts); err != nil {
		return err
	}
	b := blocks{operation: coll.String(), counts: counts, displs: displs}
	err := c.checkRoot(root)
	switch {
	case err != nil:
	case c.rank != root:
		err = b.none("recv", recv)
	default:
		b.counts = some(counts)
		err = c.checkGather(&b, send, recv)
	}
	if err != nil {
		return c.refuse(err)
	}
	if err := c.agreeOnLengths(ctx, coll, dtype, send.Len(), counts, root, opts); err != nil {
		c.end()
		return err
	}
	b = blocks{operation: b.operation, counts: c.lengths.counts, displs: displs}
	if err := b.sum(c.size); err != nil {
		return c.refuse(err)
	}
	r := c.ask(CollGather, dtype, send, recv, opts)
	r.begun = true
	return c.gatherBlocks(ctx, r, &b, root)
}

// none refuses what belongs to the root alone.
func (b *blocks) none(buffer string, have Buffer) error {
	switch {
	case have.Len() > 0:
		return b.wrong(buffer, 0, have.Len())
	case len(b.counts) > 0:
		return b.wrong("counts", 0, len(b.counts))
	case len(b.displs) > 0:
		return b.wrong("displs", 0, len(b.displs))
	}
	return nil
}

// Scatter deals root's send out: rank r gets its elements from r*len(recv) on. recv
// has the same length, which may be zero, on all ranks; root's send is as many times as
// long as there are ranks, and that of others empty. Root's recv is disjoint from send
// or exactly its block of it.
//
// Refused with *InvalidBufferSizeError, *InvalidRootError or *InvalidArgumentError
// (overlap); fails with *CollectiveFailedError, after which recv is unspecified.
func Scatter[T Element](ctx context.Context, c *Communicator, send, recv []T, root int, opts ...CallOption) error {
	return c.scatter(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), root, opts)
}

func (c *Communicator) scatter(ctx context.Context, dtype DType, send, recv Buffer, root int, opts []CallOption) error {
	if err := c.begin(CollScatter, opts); err != nil {
		return err
	}
	b := blocks{operation: CollScatter.String(), each: recv.Len()}
	err := c.checkRoot(root)
	switch {
	case err != nil:
	case c.rank == root:
		err = c.checkScatter(&b, send, recv)
	case send.Len() > 0:
		err = b.wrong("send", 0, send.Len())
	default:
		err = b.sum(c.size)
	}
	if err != nil {
		return c.refuse(err)
	}
	return c.scatterBlocks(ctx, c.ask(CollScatter, dtype, send, recv, opts), &b, root)
}

// checkScatter checks what the root of a scatter brings.
func (c *Communicator) checkScatter(b *blocks, send, recv Buffer) error {
	if err := b.sum(c.size); err != nil {
		return err
	}
	if n := b.count(c.rank); recv.Len() != n {
		return b.wrong("recv", n, recv.Len())
	}
	if err := b.fit("send", send.Len()); err != nil {
		return err
	}
	if b.counts == nil && send.Len() != b.total {
		return b.wrong("send", b.total, send.Len())
	}
	if !within(recv, send, b.at(c.rank)) {
		return &InvalidArgumentError{b.operation, "recv overlaps send, but is not this rank's block of it"}
	}
	return nil
}

// scatterBlocks makes the call of a scatter that has been checked.
func (c *Communicator) scatterBlocks(ctx context.Context, r *request, b *blocks, root int) error {
	b.put(r)
	r.root = root
	r.bytes, r.total = b.total<<r.out.shift, b.longest<<r.out.shift
	if c.rank == root {
		r.in = c.pack(r.in, b)
	}
	if c.size == 1 {
		return c.alone(ctx, r, r.out, r.in)
	}
	return c.run(ctx, r)
}

// ScatterV is Scatter with blocks of unlike lengths, which root alone has to know: rank
// r gets counts[r] elements of root's send, from displs[r] on. displs may leave gaps
// and be in any order, which costs a copy; nil means packed. On other ranks send is
// empty, and counts and displs are nil.
//
// Ranks first tell each other the lengths; that takes a synchronisation more than
// Scatter. If root's counts are not what ranks expect the call is refused on all, with
// *MismatchError. Otherwise its errors are those of Scatter and AllGatherV.
func ScatterV[T Element](ctx context.Context, c *Communicator, send []T, counts, displs []int, recv []T, root int, opts ...CallOption) error {
	return c.scatterV(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), counts, displs, root, opts)
}

func (c *Communicator) scatterV(ctx context.Context, dtype DType, send, recv Buffer, counts, displs []int, root int, opts []CallOption) error {
	const coll = collScatterLengths
	if err := c.begin(coll, opts); err != nil {
		return err
	}
	b := blocks{operation: coll.String(), counts: counts, displs: displs}
	err := c.checkRoot(root)
	switch {
	case err != nil:
	case c.rank != root:
		err = b.none("send", send)
	default:
		b.counts = some(counts)
		err = c.checkScatter(&b, send, recv)
	}
	if err != nil {
		return c.refuse(err)
	}
	if err := c.agreeOnLengths(ctx, coll, dtype, recv.Len(), counts, root, opts); err != nil {
		c.end()
		return err
	}
	b = blocks{operation: b.operation, counts: c.lengths.counts, displs: displs}
	if err := b.sum(c.size); err != nil {
		return c.refuse(err)
	}
	r := c.ask(CollScatter, dtype, send, recv, opts)
	r.begun = true
	return c.scatterBlocks(ctx, r, &b, root)
}

// pack returns the blocks of a buffer one after the other: in the buffer itself, if
// that is how they lie there, or else in memory of the communicator.
func (c *Communicator) pack(send Buffer, b *blocks) Buffer {
	packed := true
	for at, r := 0, 0; r < len(b.displs) && packed; r++ {
		packed = b.displs[r] == at || b.counts[r] == 0
		at += b.counts[r]
	}
	if packed {
		return send.Slice(0, b.total)
	}
	to := c.spareBuffer(b.total, send.shift)
	at := 0
	for r, n := range b.counts {
		copy(to.Slice(at, at+n).data, send.Slice(b.displs[r], b.displs[r]+n).data)
		at += n
	}
	return to
}

// spareBuffer returns memory of the communicator for n elements of a call's input, until
// the next call.
func (c *Communicator) spareBuffer(n int, shift uint8) Buffer {
	bytes := n << shift
	if cap(c.spare) < bytes {
		c.spare = alignedBytes(max(bytes, 1))
	}
	return Buffer{data: c.spare[:bytes:bytes], shift: shift}
}

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
	if err := c.begin(coll, opts); err != nil {
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
	if err := c.begin(coll, opts); err != nil {
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
