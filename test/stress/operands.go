package stress

import (
	"context"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// operands are the buffers of one rank in a call.
type operands[T ccl.Element] struct {
	send, recv   []T
	inPlace      bool   // one of them is a part of the other, or all of it
	sends, recvs blocks // of send and recv
	tensors      [][]T  // of a coalesced all-reduce: the parts of recv
	want         []T    // of recv
}

// operands draws the operands of one rank in a call, and returns a function that prepares them.
func (c *call[T]) operands(d *drawing, r int) func() operands[T] {
	inPlace := d.IntN(3) == 0
	switch c.coll {
	case ccl.CollBarrier:
		return func() (o operands[T]) { return o }
	case ccl.CollBroadcast:
		return func() (o operands[T]) {
			o.want = c.input(c.root, c.count)
			if o.recv = c.output(r, c.count); r == c.root {
				o.recv = slices.Clone(o.want)
			}
			return o
		}
	case ccl.CollReduceScatter:
		return func() operands[T] { return c.reduceScatter(r, inPlace) }
	case ccl.CollAllGather, ccl.CollGather:
		return c.gathers(d, r, inPlace)
	case ccl.CollScatter:
		return c.scatters(d, r)
	case ccl.CollAllToAll:
		return c.allToAlls(d, r)
	}
	if c.counts != nil {
		return func() operands[T] { return c.coalesced(r) }
	}
	return func() operands[T] { return c.reduction(r, inPlace) }
}

// reduction prepares an all-reduce, a reduce or a scan.
func (c *call[T]) reduction(r int, inPlace bool) (o operands[T]) {
	ranks := c.g.size()
	switch c.coll {
	case ccl.CollScan:
		ranks = r + 1
	case ccl.CollExScan:
		ranks = r
	}
	o.send = c.input(r, c.count)
	if c.coll == ccl.CollReduce && r != c.root {
		return o
	}
	if o.recv, o.inPlace = o.send, inPlace; !inPlace {
		o.recv = c.output(r, c.count)
	}
	if o.want = c.reduced(ranks, 0, c.count); ranks == 0 {
		o.want = slices.Clone(o.recv) // it stays unchanged
	}
	return o
}

func (c *call[T]) coalesced(r int) (o operands[T]) {
	tensors := packed(c.counts)
	o.recv, o.want = c.input(r, tensors.total), c.reduced(c.g.size(), 0, tensors.total)
	for i := range c.counts {
		lo, hi := tensors.at(i)
		o.tensors = append(o.tensors, o.recv[lo:hi])
	}
	return o
}

// lengths returns the length of each rank's block.
func (c *call[T]) lengths() []int {
	if c.counts != nil {
		return c.counts
	}
	return slices.Repeat([]int{c.count}, c.g.size())
}

func (c *call[T]) reduceScatter(r int, inPlace bool) (o operands[T]) {
	o.sends = packed(c.lengths())
	lo, hi := o.sends.at(r)
	o.send = c.input(r, o.sends.total)
	if o.recv, o.inPlace = o.send[lo:hi], inPlace; !inPlace {
		o.recv = c.output(r, hi-lo)
	}
	o.want = c.reduced(c.g.size(), lo, hi)
	return o
}

func (c *call[T]) gathers(d *drawing, r int, inPlace bool) func() operands[T] {
	all := packed(c.lengths())
	if c.counts != nil {
		all = d.place(c.counts)
	}
	return func() (o operands[T]) {
		o.send = c.input(r, all.counts[r])
		if c.coll == ccl.CollGather && r != c.root {
			return o
		}
		o.recvs, o.recv = all, c.output(r, all.total)
		o.want = filled(o.recv, all, func(s int) []T { return c.input(s, all.counts[s]) })
		if inPlace {
			lo, hi := all.at(r)
			copy(o.recv[lo:hi], o.send)
			o.send, o.inPlace = o.recv[lo:hi], true
		}
		return o
	}
}

func (c *call[T]) scatters(d *drawing, r int) func() operands[T] {
	all := packed(c.lengths())
	if c.counts != nil && r == c.root {
		all = d.place(c.counts)
	}
	return func() (o operands[T]) {
		block := func(s int) []T { return c.input(s, all.counts[s]) }
		if o.recv, o.want = c.output(r, all.counts[r]), block(r); r == c.root {
			o.sends, o.send = all, filled(c.output(r, all.total), all, block)
		}
		return o
	}
}

func (c *call[T]) allToAlls(d *drawing, r int) func() operands[T] {
	sends, recvs := packed(c.lengths()), packed(c.lengths())
	if c.matrix != nil {
		column := make([]int, c.g.size())
		for s := range column {
			column[s] = c.matrix[s][r]
		}
		sends, recvs = d.place(c.matrix[r]), d.place(column)
	}
	// The blocks of one rank for two others differ.
	block := func(from, to, n int) []T {
		return c.data(c.event, 100*(1+c.g.members[from])+c.g.members[to], n, c.bits)
	}
	return func() (o operands[T]) {
		o.sends, o.recvs = sends, recvs
		o.send = filled(c.output(r, sends.total), sends, func(s int) []T { return block(r, s, sends.counts[s]) })
		o.recv = c.output(r, recvs.total)
		o.want = filled(o.recv, recvs, func(s int) []T { return block(s, r, recvs.counts[s]) })
		return o
	}
}

// make makes the call.
func (c *call[T]) make(ctx context.Context, comm *ccl.Communicator, o *operands[T], more ...ccl.CallOption) error {
	opts := slices.Concat(c.opts, more)
	switch c.name {
	case "barrier":
		return comm.Barrier(ctx, more...)
	case "all_reduce":
		return ccl.AllReduce(ctx, comm, o.send, o.recv, c.op, opts...)
	case "all_reduce_coalesced":
		return ccl.AllReduceCoalesced(ctx, comm, o.tensors, c.op, opts...)
	case "reduce":
		return ccl.Reduce(ctx, comm, o.send, o.recv, c.op, c.root, opts...)
	case "reduce_scatter":
		return ccl.ReduceScatter(ctx, comm, o.send, o.recv, c.op, opts...)
	case "reduce_scatter_v":
		return ccl.ReduceScatterV(ctx, comm, o.send, o.recv, c.op, o.sends.counts, opts...)
	case "scan":
		return ccl.Scan(ctx, comm, o.send, o.recv, c.op, opts...)
	case "exscan":
		return ccl.ExScan(ctx, comm, o.send, o.recv, c.op, opts...)
	case "broadcast":
		return ccl.Broadcast(ctx, comm, o.recv, c.root, opts...)
	case "all_gather":
		return ccl.AllGather(ctx, comm, o.send, o.recv, opts...)
	case "all_gather_v":
		return ccl.AllGatherV(ctx, comm, o.send, o.recv, o.recvs.counts, o.recvs.displs, opts...)
	case "gather":
		return ccl.Gather(ctx, comm, o.send, o.recv, c.root, opts...)
	case "gather_v":
		return ccl.GatherV(ctx, comm, o.send, o.recv, o.recvs.counts, o.recvs.displs, c.root, opts...)
	case "scatter":
		return ccl.Scatter(ctx, comm, o.send, o.recv, c.root, opts...)
	case "scatter_v":
		return ccl.ScatterV(ctx, comm, o.send, o.sends.counts, o.sends.displs, o.recv, c.root, opts...)
	case "all_to_all":
		return ccl.AllToAll(ctx, comm, o.send, o.recv, opts...)
	}
	return ccl.AllToAllV(ctx, comm, o.send, o.sends.counts, o.sends.displs, o.recv, o.recvs.counts, o.recvs.displs, opts...)
}

// start starts the call, as make makes it.
func (c *call[T]) start(ctx context.Context, comm *ccl.Communicator, o *operands[T]) *ccl.Work {
	w := new(ccl.Work)
	_ = c.make(ctx, comm, o, ccl.WithWork(w)) // w has the error as well
	return w
}
