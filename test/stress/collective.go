package stress

import (
	"cmp"
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
	kind
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

var premul = ccl.PremulSum(factor)

const factor = 3

// collective draws a call.
func (n *numbers[T]) collective(d *drawing, g *group, k kind) {
	c := &call[T]{numbers: n, kind: k, g: g, event: d.event, bits: n.bits, root: d.IntN(g.size())}
	text := fmt.Sprintf("%s of %v", k.name, ccl.DTypeOf[T]())
	if k.coll.Reduces() {
		c.drawOp(d)
		text += fmt.Sprintf(" (%v)", c.op)
	}
	c.drawLengths(d)
	text += fmt.Sprintf(" of %d %d %d", c.count, c.counts, c.matrix)
	if k.coll.Rooted() {
		text += fmt.Sprintf(", root %d", c.root)
	}
	var by string
	if k.coll != ccl.CollBarrier {
		op := c.op
		if op == premul {
			op = ccl.Sum // as kernels see it
		}
		c.opts, by = d.algorithm(g, k.coll, ccl.DTypeOf[T](), op)
	}
	text += by + " in " + g.name
	for r, rank := range g.members {
		prepare := c.operands(d, r)
		async := d.IntN(2) == 0
		if d.starts != nil {
			async = d.starts[rank]
		}
		d.addReady(rank, text, func() func(*run) error {
			o := prepare()
			e := c.ending(&o, text)
			return func(run *run) error {
				comm := run.groups[g]
				if async {
					run.later(&c.event, c.start(run.ctx, comm, &o), e)
					return nil
				}
				return run.ended(e, c.make(run.ctx, comm, &o))
			}
		})
	}
}

// ending returns the checks of a rank's operands at the end of the call.
func (c *call[T]) ending(o *operands[T], text string) *ending {
	e := &ending{group: c.g, what: Outcome{Event: c.event, Kind: Call, Text: text}}
	sent := slices.Clone(o.send)
	e.check = func() error { return same("recv", o.recv, o.want) }
	if !o.inPlace {
		e.input = func() error { return same("send", o.send, sent) }
		e.check = func() error { return cmp.Or(e.input(), same("recv", o.recv, o.want)) }
	}
	e.spoil, e.kept = c.spoils(o.send, o.recv)
	return e
}

// drawOp draws an operation, and the width of inputs with which nothing is rounded and
// nothing overflows.
func (c *call[T]) drawOp(d *drawing) {
	ops := slices.DeleteFunc(append(ccl.Ops(), premul), func(op ccl.Op) bool { return op.Check(c.coll, ccl.DTypeOf[T]()) != nil })
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

func (c *call[T]) drawLengths(d *drawing) {
	switch c.name {
	case "barrier":
	case "all_gather_v", "gather_v", "scatter_v", "reduce_scatter_v", "all_reduce_coalesced":
		parts := c.g.size()
		if c.name == "all_reduce_coalesced" {
			parts = 1 + d.IntN(9)
		}
		for range parts {
			c.counts = append(c.counts, d.length(0))
		}
		if c.coll.Reduces() {
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
		if c.coll.Reduces() {
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
	return c.of(acc)
}
