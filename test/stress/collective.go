package stress

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// kinds lists the collectives, in all their forms, with the kernel that each needs.
var kinds = []kind{
	{"barrier", ccl.CollBarrier}, {"all_reduce", ccl.CollAllReduce}, {"all_reduce_coalesced", ccl.CollAllReduce},
	{"reduce", ccl.CollReduce}, {"reduce_scatter", ccl.CollReduceScatter}, {"reduce_scatter_v", ccl.CollReduceScatter},
	{"scan", ccl.CollScan}, {"exscan", ccl.CollExScan}, {"broadcast", ccl.CollBroadcast},
	{"all_gather", ccl.CollAllGather}, {"all_gather_v", ccl.CollAllGather},
	{"gather", ccl.CollGather}, {"gather_v", ccl.CollGather}, {"scatter", ccl.CollScatter}, {"scatter_v", ccl.CollScatter},
	{"all_to_all", ccl.CollAllToAll}, {"all_to_all_v", ccl.CollAllToAll},
}

type kind struct {
	name string
	coll ccl.Collective
}

// call is a collective in a group.
type call[T ccl.Element] struct {
	*numbers[T]
	g     *group
	event int
	op    ccl.Op
	bits  int
	root  int
	opts  []ccl.CallOption
	count int
	// For unequal lengths: counts[r] is rank r's length, matrix[r][s] of rank r's block for rank s.
	counts []int
	matrix [][]int
}

// operands are the buffers of one rank in a call. recv may be send, or a part of it.
type operands[T ccl.Element] struct {
	send, recv []T
	want       []T // of recv
	call       func(ctx context.Context, c *ccl.Communicator) error
	start      func(ctx context.Context, c *ccl.Communicator) *ccl.Work
}

var premul = ccl.PremulSum(factor)

const factor = 3

// collective draws a call.
func (n *numbers[T]) collective(d *drawing, g *group, k kind) {
	c := &call[T]{numbers: n, g: g, event: d.event, bits: n.bits, root: d.IntN(g.size())}
	text := fmt.Sprintf("%s of %v", k.name, ccl.DTypeOf[T]())
	if k.coll.Reduces() {
		c.drawOp(d, k.coll)
		text += fmt.Sprintf(" (%v)", c.op)
	}
	c.drawLengths(d, k)
	text += fmt.Sprintf(" of %d %d %d", c.count, c.counts, c.matrix)
	if k.coll.Rooted() {
		text += fmt.Sprintf(", root %d", c.root)
	}
	var by string
	if k.coll != ccl.CollBarrier {
		c.opts, by = d.algorithm(k.coll)
	}
	text += by + " in " + g.name
	for r, rank := range g.members {
		prepare := c.of(d, k.name, r)
		async := d.IntN(2) == 0
		if d.starts != nil {
			async = d.starts[rank]
		}
		d.addReady(rank, text, func() func(*run) error {
			o := prepare()
			e := c.ending(&o, text, async)
			return func(run *run) error {
				comm := run.groups[g]
				if async {
					run.later(&c.event, o.start(run.ctx, comm), e)
					return nil
				}
				return run.ended(e, o.call(run.ctx, comm))
			}
		})
	}
}

// ending returns the checks of a rank's operands at the end of the call.
func (c *call[T]) ending(o *operands[T], text string, async bool) *ending {
	e := &ending{group: c.g, what: Outcome{Event: c.event, Kind: Call, Text: text, Async: async}}
	sent := slices.Clone(o.send)
	apart := len(o.send) == 0 || len(o.recv) == 0 || !within(&o.recv[0], o.send) && !within(&o.send[0], o.recv)
	inPlace := !apart && within(&o.recv[0], o.send)
	e.check = func() error {
		if !inPlace {
			if err := same("send", o.send, sent); err != nil {
				return err
			}
		}
		return same("recv", o.recv, o.want)
	}
	if apart {
		e.input = func() error { return same("send", o.send, sent) }
	}
	e.spoil, e.kept = c.spoils(o.send, o.recv)
	return e
}

// within reports whether x is an element of s.
func within[T any](x *T, s []T) bool {
	for i := range s {
		if &s[i] == x {
			return true
		}
	}
	return false
}

// drawOp draws an operation, and the width of inputs with which nothing is rounded and
// nothing overflows.
func (c *call[T]) drawOp(d *drawing, coll ccl.Collective) {
	scans := coll == ccl.CollScan || coll == ccl.CollExScan
	ops := slices.DeleteFunc(append(ccl.Ops(), premul), func(op ccl.Op) bool {
		return !op.Defined(ccl.DTypeOf[T]()) || op == ccl.Avg && scans
	})
	c.op = ops[d.IntN(len(ops))]
	switch c.op {
	case ccl.Sum, ccl.Avg:
		c.bits -= 3
	case premul:
		c.bits -= 5
	case ccl.Product:
		c.bits = max(c.bits/c.g.size(), 1)
	}
}

func (c *call[T]) drawLengths(d *drawing, k kind) {
	switch k.name {
	case "barrier":
	case "all_gather_v", "gather_v", "scatter_v", "reduce_scatter_v", "all_reduce_coalesced":
		parts := c.g.size()
		if k.name == "all_reduce_coalesced" {
			parts = 1 + d.IntN(9)
		}
		for range parts {
			c.counts = append(c.counts, d.length(0))
		}
		if k.coll.Reduces() {
			c.counts[d.IntN(parts)]++
		}
	case "all_to_all_v":
		for range c.g.size() {
			row := make([]int, c.g.size())
			for s := range row {
				row[s] = d.length(0)
			}
			c.matrix = append(c.matrix, row)
		}
	default:
		least := 0
		if k.coll.Reduces() {
			least = 1
		}
		c.count = d.length(least)
	}
}

// input returns the n elements of input of a rank of the group.
func (c *call[T]) input(r, n int) []T { return c.data(c.event, c.g.members[r], n, c.bits) }

// output returns the n elements that a rank's output holds before the call.
func (c *call[T]) output(r, n int) []T { return c.data(c.event, 1000+c.g.members[r], n, c.bits) }

// reduced returns the elements from lo to hi of the reduction of the inputs of the first
// ranks.
func (c *call[T]) reduced(ranks, lo, hi int) []T {
	x := make([]T, hi-lo)
	for i := range x {
		x[i] = c.reduce(ranks, lo+i)
	}
	return x
}

func (c *call[T]) reduce(ranks, i int) T {
	acc := int64(0)
	for r := range ranks {
		x := hash(c.event, c.g.members[r], i) & (1<<c.bits - 1)
		switch {
		case r == 0 && c.op != premul:
			acc = x
		case c.op == premul:
			acc += factor * x
		case c.op == ccl.Product:
			acc *= x
		case c.op == ccl.Min:
			acc = min(acc, x)
		case c.op == ccl.Max:
			acc = max(acc, x)
		case c.op == ccl.BAnd:
			acc &= x
		case c.op == ccl.BOr:
			acc |= x
		case c.op == ccl.BXor:
			acc ^= x
		default:
			acc += x
		}
	}
	if c.op == ccl.Avg {
		return c.over(acc, ranks)
	}
	return c.numbers.of(acc)
}

// place draws the positions of blocks; nil: packed.
func (d *drawing) place(counts []int) (displs []int, total int) {
	if d.IntN(3) == 0 {
		return nil, sum(counts)
	}
	displs = make([]int, len(counts))
	for _, r := range d.Perm(len(counts)) {
		total += d.IntN(3)
		displs[r] = total
		total += counts[r]
	}
	return displs, total + d.IntN(3)
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// at returns the position of a block.
func at(counts, displs []int, r int) int {
	if displs == nil {
		return sum(counts[:r])
	}
	return displs[r]
}

// scattered returns a copy of x with the blocks at their positions.
func scattered[T any](x []T, counts, displs []int, block func(r int) []T) []T {
	x = slices.Clone(x)
	for r, n := range counts {
		copy(x[at(counts, displs, r):][:n], block(r))
	}
	return x
}

func even(count, ranks int) []int {
	return slices.Repeat([]int{count}, ranks)
}

// of draws the operands of one rank in a call, and returns a function that prepares them.
func (c *call[T]) of(d *drawing, kind string, r int) func() operands[T] {
	n, g, root := c.count, c.g, c.root
	size, inPlace := g.size(), d.IntN(3) == 0
	reduces := func(ranks int, results bool) (o operands[T]) {
		o.send = c.input(r, n)
		switch {
		case !results:
		case inPlace:
			o.recv, o.want = o.send, c.reduced(ranks, 0, n)
		default:
			o.recv, o.want = c.output(r, n), c.reduced(ranks, 0, n)
		}
		return o
	}
	switch kind {
	case "barrier":
		return func() (o operands[T]) {
			o.call = func(ctx context.Context, comm *ccl.Communicator) error { return comm.Barrier(ctx) }
			o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work { return comm.BarrierAsync(ctx) }
			return o
		}
	case "all_reduce":
		return func() operands[T] {
			o := reduces(size, true)
			o.call = func(ctx context.Context, comm *ccl.Communicator) error {
				return ccl.AllReduce(ctx, comm, o.send, o.recv, c.op, c.opts...)
			}
			o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
				return ccl.AllReduceAsync(ctx, comm, o.send, o.recv, c.op, c.opts...)
			}
			return o
		}
	case "all_reduce_coalesced":
		return func() (o operands[T]) {
			o.recv = c.input(r, sum(c.counts))
			o.want = c.reduced(size, 0, len(o.recv))
			var tensors [][]T
			for i, n := range c.counts {
				tensors = append(tensors, o.recv[sum(c.counts[:i]):][:n])
			}
			o.call = func(ctx context.Context, comm *ccl.Communicator) error {
				return ccl.AllReduceCoalesced(ctx, comm, tensors, c.op, c.opts...)
			}
			o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
				return ccl.AllReduceCoalescedAsync(ctx, comm, tensors, c.op, c.opts...)
			}
			return o
		}
	case "reduce":
		return func() operands[T] {
			o := reduces(size, r == root)
			o.call = func(ctx context.Context, comm *ccl.Communicator) error {
				return ccl.Reduce(ctx, comm, o.send, o.recv, c.op, root, c.opts...)
			}
			o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
				return ccl.ReduceAsync(ctx, comm, o.send, o.recv, c.op, root, c.opts...)
			}
			return o
		}
	case "scan":
		return func() operands[T] {
			o := reduces(r+1, true)
			o.call = func(ctx context.Context, comm *ccl.Communicator) error {
				return ccl.Scan(ctx, comm, o.send, o.recv, c.op, c.opts...)
			}
			o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
				return ccl.ScanAsync(ctx, comm, o.send, o.recv, c.op, c.opts...)
			}
			return o
		}
	case "exscan":
		return func() operands[T] {
			o := reduces(r, true)
			if r == 0 {
				o.want = slices.Clone(o.recv)
			}
			o.call = func(ctx context.Context, comm *ccl.Communicator) error {
				return ccl.ExScan(ctx, comm, o.send, o.recv, c.op, c.opts...)
			}
			o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
				return ccl.ExScanAsync(ctx, comm, o.send, o.recv, c.op, c.opts...)
			}
			return o
		}
	case "reduce_scatter", "reduce_scatter_v":
		counts := c.counts
		if counts == nil {
			counts = even(n, size)
		}
		return func() (o operands[T]) {
			lo := sum(counts[:r])
			hi := lo + counts[r]
			o.send = c.input(r, sum(counts))
			if o.recv = c.output(r, hi-lo); inPlace {
				o.recv = o.send[lo:hi]
			}
			o.want = c.reduced(size, lo, hi)
			o.call = func(ctx context.Context, comm *ccl.Communicator) error {
				if c.counts == nil {
					return ccl.ReduceScatter(ctx, comm, o.send, o.recv, c.op, c.opts...)
				}
				return ccl.ReduceScatterV(ctx, comm, o.send, o.recv, c.op, counts, c.opts...)
			}
			o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
				if c.counts == nil {
					return ccl.ReduceScatterAsync(ctx, comm, o.send, o.recv, c.op, c.opts...)
				}
				return ccl.ReduceScatterVAsync(ctx, comm, o.send, o.recv, c.op, counts, c.opts...)
			}
			return o
		}
	case "broadcast":
		return func() (o operands[T]) {
			if o.recv = c.output(r, n); r == root {
				o.recv = c.input(r, n)
			}
			o.want = c.input(root, n)
			o.call = func(ctx context.Context, comm *ccl.Communicator) error {
				return ccl.Broadcast(ctx, comm, o.recv, root, c.opts...)
			}
			o.start = func(ctx context.Context, comm *ccl.Communicator) *ccl.Work {
				return ccl.BroadcastAsync(ctx, comm, o.recv, root, c.opts...)
			}
			return o
		}
	case "all_gather", "all_gather_v", "gather", "gather_v":
		return c.gathers(d, kind, r, inPlace)
	case "scatter", "scatter_v":
		return c.scatters(d, r)
	default:
		return c.allToAlls(d, r)
	}
}
