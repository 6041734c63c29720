package ccl

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/layout"
)

// AllGather gives every rank the inputs of all: rank r's send goes to recv[r*len(send):]. send
// has the same length, which may be 0, on all ranks; recv is as long as the send of all ranks
// together. send is disjoint from recv or exactly this rank's block of it.
//
// The order of the arguments is send, recv, as in MPI; package dist has torch's order.
//
// Rejected with *InvalidBufferSizeError or *InvalidArgumentError (overlap). Fails with
// *CollectiveFailedError; recv is then unspecified.
func AllGather[T Element](ctx context.Context, c *Communicator, send, recv []T, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollAllGather, dtype: DTypeOf[T](), send: bufferOf(send), recv: bufferOf(recv),
	}, nil, opts)
}

// AllGatherV is AllGather with inputs of different lengths: rank r's send, of counts[r] elements,
// goes to recv[displs[r]:]. counts is the same on all ranks and may contain zeros. Each rank
// chooses its own displs: they may leave gaps, which are not changed, and be in any order; nil
// means packed. send is disjoint from recv or exactly this rank's block of it.
//
// Rejected with *InvalidBufferSizeError or *InvalidArgumentError (negative counts, blocks that
// overlap). Fails with *CollectiveFailedError; recv is then unspecified.
func AllGatherV[T Element](ctx context.Context, c *Communicator, send, recv []T, counts, displs []int, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollAllGather, dtype: DTypeOf[T](), send: bufferOf(send), recv: bufferOf(recv),
	}, &lists{counts: notNil(counts), displs: displs}, opts)
}

// Gather gives root the inputs of all: rank r's send goes to root's recv[r*len(send):]. send has
// the same length, which may be 0, on all ranks. root's recv is as long as the send of all ranks
// together; the recv of other ranks is empty. root's send is disjoint from recv or exactly its
// block of it.
//
// Rejected with *InvalidBufferSizeError, *InvalidRootError or *InvalidArgumentError (overlap).
// Fails with *CollectiveFailedError; root's recv is then unspecified.
func Gather[T Element](ctx context.Context, c *Communicator, send, recv []T, root int, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollGather, dtype: DTypeOf[T](), send: bufferOf(send), recv: bufferOf(recv), root: root,
	}, nil, opts)
}

// GatherV is Gather with inputs of different lengths, which only root has to know: rank r's send,
// of counts[r] elements, goes to root's recv[displs[r]:]. displs may leave gaps, which are not
// changed, and be in any order; nil means packed. On other ranks recv is empty, and counts and
// displs are nil.
//
// Ranks first exchange the lengths, which takes one synchronisation more than Gather. If root's
// counts differ from what ranks bring, all ranks reject the call with *MismatchError. The other
// errors are those of Gather and AllGatherV.
func GatherV[T Element](ctx context.Context, c *Communicator, send, recv []T, counts, displs []int, root int, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: collGatherLengths, dtype: DTypeOf[T](), send: bufferOf(send), recv: bufferOf(recv), root: root,
	}, &lists{counts: counts, displs: displs}, opts)
}

// Scatter gives each rank its block of root's send: rank r gets the elements from r*len(recv) on.
// recv has the same length, which may be 0, on all ranks. root's send is as long as the recv of
// all ranks together; the send of other ranks is empty. root's recv is disjoint from send or
// exactly its block of it.
//
// Rejected with *InvalidBufferSizeError, *InvalidRootError or *InvalidArgumentError (overlap).
// Fails with *CollectiveFailedError; recv is then unspecified.
func Scatter[T Element](ctx context.Context, c *Communicator, send, recv []T, root int, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollScatter, dtype: DTypeOf[T](), send: bufferOf(send), recv: bufferOf(recv), root: root,
	}, nil, opts)
}

// ScatterV is Scatter with blocks of different lengths, which only root has to know: rank r gets
// counts[r] elements of root's send, from displs[r] on. displs may leave gaps and be in any
// order, which costs a copy; nil means packed. On other ranks send is empty, and counts and
// displs are nil.
//
// Ranks first exchange the lengths, which takes one synchronisation more than Scatter. If root's
// counts differ from what ranks expect, all ranks reject the call with *MismatchError. The other
// errors are those of Scatter and AllGatherV.
func ScatterV[T Element](ctx context.Context, c *Communicator, send []T, counts, displs []int, recv []T, root int, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: collScatterLengths, dtype: DTypeOf[T](), send: bufferOf(send), recv: bufferOf(recv), root: root,
	}, &lists{counts: counts, displs: displs}, opts)
}

func (e *engine) allGather(ctx context.Context, a *arguments, l *lists, opts []CallOption) error {
	p := partsOf(a, l, opts)
	if err := p.check(e.size, e.rank); err != nil {
		return e.rejectCall(a, opts, err)
	}
	return e.moveBlocks(ctx, e.ask(a.coll, a.dtype, a.send, a.recv, opts), &p.blocks, 0)
}

// gatherOrScatter makes a gather or a scatter. Unless all blocks have the same length, only the
// root knows their lengths, and the ranks exchange them first.
func (e *engine) gatherOrScatter(ctx context.Context, a *arguments, l *lists, opts []CallOption) error {
	p := partsOf(a, l, opts)
	if err := e.checkParts(a, &p, opts); err != nil {
		return e.rejectCall(a, opts, err)
	}

	moves, exchanges := a.coll, a.coll.exchangesLengths()
	if exchanges {
		if err := e.agreeOnLengths(ctx, a, p.each, l.counts, opts); err != nil {
			return err
		}
		p.counts = e.scratch.lengths.counts
		if moves = CollGather; a.coll == collScatterLengths {
			moves = CollScatter
		}
	}

	if err := p.sum(e.size); err != nil {
		return e.rejectCall(a, opts, err)
	}

	r := e.ask(moves, a.dtype, a.send, a.recv, opts)
	r.isJoined = exchanges
	return e.moveBlocks(ctx, r, &p.blocks, a.root)
}

// parts are the buffers of a gather or a scatter: a rank's part, and the whole, one block for
// each rank, where the rank has that.
type parts struct {
	blocks
	part, whole         Buffer
	partName, wholeName string
}

func partsOf(a *arguments, l *lists, opts []CallOption) parts {
	names := namesOf(a.coll, opts)
	p := parts{part: a.send, whole: a.recv, partName: names.send, wholeName: names.recv}
	if a.coll == CollScatter || a.coll == collScatterLengths {
		p = parts{part: a.recv, whole: a.send, partName: names.recv, wholeName: names.send}
	}
	p.blocks = blocks{operation: a.coll.String(), each: p.part.Len()}
	if l != nil {
		p.counts, p.displs = l.counts, l.displs
	}
	return p
}

// checkParts checks the arguments of a gather or a scatter.
func (e *engine) checkParts(a *arguments, p *parts, opts []CallOption) error {
	if err := e.checkRoot(a, opts); err != nil {
		return err
	}
	if e.rank != a.root {
		return p.checkAbsent()
	}
	if a.coll.exchangesLengths() {
		p.counts = notNil(p.counts)
	}
	return p.check(e.size, e.rank)
}

// check checks the parts of a rank that has the whole.
func (p *parts) check(ranks, rank int) error {
	if err := p.sum(ranks); err != nil {
		return err
	}
	if n := p.count(rank); p.part.Len() != n {
		return p.lengthError(p.partName, n, p.part.Len())
	}

	if p.counts == nil && p.whole.Len() != p.total {
		return p.lengthError(p.wholeName, p.total, p.whole.Len())
	}
	if err := p.checkIn(p.wholeName, p.whole.Len()); err != nil {
		return err
	}
	if !within(p.part, p.whole, p.at(rank)) {
		return &InvalidArgumentError{p.operation, p.partName + " overlaps " + p.wholeName + ", but is not this rank's block of it"}
	}
	return nil
}

// checkAbsent checks that a rank that is not the root has not brought what only the root has.
func (p *parts) checkAbsent() error {
	switch {
	case p.whole.Len() > 0:
		return p.lengthError(p.wholeName, 0, p.whole.Len())
	case len(p.counts) > 0:
		return p.lengthError("counts", 0, len(p.counts))
	case len(p.displs) > 0:
		return p.lengthError("displs", 0, len(p.displs))
	}
	return nil
}

// moveBlocks makes the call of a gather or a scatter whose arguments are valid.
func (e *engine) moveBlocks(ctx context.Context, r *request, b *blocks, root int) error {
	b.put(r)
	r.root = root
	longest, total := b.longest<<r.in.shift, b.total<<r.in.shift
	if r.coll != CollScatter {
		r.bytes, r.total, r.displs = longest, total, b.displs
		return e.step(ctx, r)
	}
	r.bytes, r.total = total, longest
	if e.rank == root {
		r.in = e.pack(r.in, b)
	}
	return e.step(ctx, r)
}

// pack returns the blocks of a buffer without gaps, in rank order: in the buffer itself if they
// lie there like that, otherwise in memory of the communicator.
func (e *engine) pack(send Buffer, b *blocks) Buffer {
	if layout.Packed(b.counts, b.displs) {
		return send.Slice(0, b.total)
	}
	to := e.spareBuffer(b.total, send.shift)
	at := 0
	for r, n := range b.counts {
		copy(to.Slice(at, at+n).data, send.Slice(b.displs[r], b.displs[r]+n).data)
		at += n
	}
	return to
}
