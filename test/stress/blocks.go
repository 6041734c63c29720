package stress

import (
	"context"

	"github.com/goccl/goccl/ccl"
)

// gathers prepares a gather or an all-gather of equal or unequal blocks.
func (c *call[T]) gathers(d *drawing, kind string, r int, inPlace bool) func() operands[T] {
	root, counts := c.root, c.counts
	all := kind == "all_gather" || kind == "all_gather_v"
	if counts == nil {
		counts = even(c.count, c.g.size())
	}
	var displs []int
	total := sum(counts)
	if c.counts != nil {
		displs, total = d.place(counts)
	}
	return func() (o operands[T]) {
		o.send = c.input(r, counts[r])
		if all || r == root {
			o.recv = c.output(r, total)
			o.want = scattered(o.recv, counts, displs, func(s int) []T { return c.input(s, counts[s]) })
			if inPlace {
				mine := o.recv[at(counts, displs, r):][:counts[r]]
				copy(mine, o.send)
				o.send = mine
			}
		}
		its, where := counts, displs
		if !all && r != root {
			its, where = nil, nil
		}
		o.call = func(ctx context.Context, comm *ccl.Communicator) error {
			switch kind {
			case "all_gather":
				return ccl.AllGather(ctx, comm, o.send, o.recv, c.opts...)
			case "all_gather_v":
				return ccl.AllGatherV(ctx, comm, o.send, o.recv, its, where, c.opts...)
			case "gather":
				return ccl.Gather(ctx, comm, o.send, o.recv, root, c.opts...)
			default:
				return ccl.GatherV(ctx, comm, o.send, o.recv, its, where, root, c.opts...)
			}
		}
		o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
			switch kind {
			case "all_gather":
				return ccl.AllGatherAsync(ctx, comm, o.send, o.recv, c.opts...)
			case "all_gather_v":
				return ccl.AllGatherVAsync(ctx, comm, o.send, o.recv, its, where, c.opts...)
			case "gather":
				return ccl.GatherAsync(ctx, comm, o.send, o.recv, root, c.opts...)
			default:
				return ccl.GatherVAsync(ctx, comm, o.send, o.recv, its, where, root, c.opts...)
			}
		}
		return o
	}
}

// scatters prepares a scatter of equal or unequal blocks.
func (c *call[T]) scatters(d *drawing, r int) func() operands[T] {
	root, counts := c.root, c.counts
	if counts == nil {
		counts = even(c.count, c.g.size())
	}
	var displs []int
	total := sum(counts)
	if c.counts != nil && r == root {
		displs, total = d.place(counts)
	}
	return func() (o operands[T]) {
		block := func(s int) []T { return c.input(s, counts[s]) }
		if o.recv, o.want = c.output(r, counts[r]), block(r); r == root {
			o.send = scattered(c.output(r, total), counts, displs, block)
		}
		var its []int
		if r == root {
			its = counts
		}
		o.call = func(ctx context.Context, comm *ccl.Communicator) error {
			if c.counts == nil {
				return ccl.Scatter(ctx, comm, o.send, o.recv, root, c.opts...)
			}
			return ccl.ScatterV(ctx, comm, o.send, its, displs, o.recv, root, c.opts...)
		}
		o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
			if c.counts == nil {
				return ccl.ScatterAsync(ctx, comm, o.send, o.recv, root, c.opts...)
			}
			return ccl.ScatterVAsync(ctx, comm, o.send, its, displs, o.recv, root, c.opts...)
		}
		return o
	}
}

// allToAlls prepares an all-to-all of equal or unequal blocks.
func (c *call[T]) allToAlls(d *drawing, r int) func() operands[T] {
	size := c.g.size()
	length := func(from, to int) int {
		if c.matrix == nil {
			return c.count
		}
		return c.matrix[from][to]
	}
	sends, recvs := make([]int, size), make([]int, size)
	for s := range size {
		sends[s], recvs[s] = length(r, s), length(s, r)
	}
	var sendDispls, recvDispls []int
	sendTotal, recvTotal := sum(sends), sum(recvs)
	if c.matrix != nil {
		sendDispls, sendTotal = d.place(sends)
		recvDispls, recvTotal = d.place(recvs)
	}
	// The blocks of one rank for two others differ.
	block := func(from, to int) []T {
		return c.data(c.event, 100*(1+c.g.members[from])+c.g.members[to], length(from, to), c.bits)
	}
	return func() (o operands[T]) {
		o.send = scattered(c.output(r, sendTotal), sends, sendDispls, func(s int) []T { return block(r, s) })
		o.recv = c.output(r, recvTotal)
		o.want = scattered(o.recv, recvs, recvDispls, func(s int) []T { return block(s, r) })
		o.call = func(ctx context.Context, comm *ccl.Communicator) error {
			if c.matrix == nil {
				return ccl.AllToAll(ctx, comm, o.send, o.recv, c.opts...)
			}
			return ccl.AllToAllV(ctx, comm, o.send, sends, sendDispls, o.recv, recvs, recvDispls, c.opts...)
		}
		o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
			if c.matrix == nil {
				return ccl.AllToAllAsync(ctx, comm, o.send, o.recv, c.opts...)
			}
			return ccl.AllToAllVAsync(ctx, comm, o.send, sends, sendDispls, o.recv, recvs, recvDispls, c.opts...)
		}
		return o
	}
}
