package ccl

import "context"

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
	if err := c.begin(ctx, CollAllGather, opts); err != nil {
		return err
	}
	p := partsOf(CollAllGather, send, recv)
	p.each, p.counts, p.displs = send.Len(), counts, displs
	if err := p.check(c.size, c.rank); err != nil {
		return c.refuse(err)
	}
	return c.gatherBlocks(ctx, c.ask(CollAllGather, dtype, send, recv, opts), &p.blocks, 0)
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
	return c.rooted(ctx, CollGather, DTypeOf[T](), bufferOf(send), bufferOf(recv), root, opts)
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
	return c.rootedV(ctx, collGatherLengths, DTypeOf[T](), bufferOf(send), bufferOf(recv), counts, displs, root, opts)
}

// Scatter deals root's send out: rank r gets its elements from r*len(recv) on. recv
// has the same length, which may be zero, on all ranks; root's send is as many times as
// long as there are ranks, and that of others empty. Root's recv is disjoint from send
// or exactly its block of it.
//
// Refused with *InvalidBufferSizeError, *InvalidRootError or *InvalidArgumentError
// (overlap); fails with *CollectiveFailedError, after which recv is unspecified.
func Scatter[T Element](ctx context.Context, c *Communicator, send, recv []T, root int, opts ...CallOption) error {
	return c.rooted(ctx, CollScatter, DTypeOf[T](), bufferOf(send), bufferOf(recv), root, opts)
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
	return c.rootedV(ctx, collScatterLengths, DTypeOf[T](), bufferOf(send), bufferOf(recv), counts, displs, root, opts)
}
