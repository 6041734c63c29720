package stress

import (
	"cmp"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
)

// form is a collective, in one of its two forms if it has two.
type form struct {
	coll        ccl.Collective
	isCoalesced bool
}

func (f form) String() string {
	if f.isCoalesced {
		return f.coll.String() + "_coalesced"
	}
	return f.coll.String()
}

// forms lists the collectives. Blocks of equal and of unequal lengths are drawn with the call.
var forms = func() []form {
	all := []form{{coll: ccl.CollBarrier}, {ccl.CollAllReduce, true}}
	for _, coll := range ccl.Collectives() {
		all = append(all, form{coll: coll})
	}
	return all
}()

func (d *drawing) collective(g *group, f form) {
	c := d.call(g.size(), f)
	opts, by := d.algorithm(g, c)
	text := c.String() + by + " in " + g.name

	event := d.event
	for r, rank := range g.members {
		isAsync := d.IntN(2) == 0
		if d.starts != nil {
			isAsync = d.starts[rank]
		}

		d.addReady(rank, text, func() func(*run) error {
			a := calls.NewAttempt(c.Clone(), r, false)
			e := &ending{
				group: g, what: Outcome{Event: event, Kind: Call, Text: text},
				check: func() error { return cmp.Or(a.Right(), a.Fences()) },
				input: a.Fences, spoil: a.Spoil, untouched: a.Untouched,
			}

			return func(run *run) error {
				comm := run.groups[g]
				if isAsync {
					run.later(&event, a.Start(run.ctx, comm, opts...), e)
					return nil
				}
				return run.ended(e, a.Make(run.ctx, comm, opts...))
			}
		})
	}
}

func (d *drawing) call(ranks int, f form) *calls.Call {
	kind := &calls.Kinds[d.IntN(len(calls.Kinds))]
	ops := kind.OpsFor(f.coll)
	op := ops[d.IntN(len(ops)-1)] // algorithms do not have the last one, which is of a test
	count, hasBlocks := 0, f.coll.Traits().Input != ccl.Vector || f.coll.Traits().Output != ccl.Vector
	switch {
	case f.coll == ccl.CollBarrier:
	case hasBlocks:
		count = ranks * d.length(1-d.IntN(2))
	default:
		count = d.length(1)
	}
	if f.coll.Traits().Reduces {
		count = max(count, 1)
	}

	c := calls.New(f.coll, ranks, kind.DType, op, count, d.Int())
	c.Salt, c.Shift = uint64(d.event), d.IntN(4)
	if hasBlocks {
		c.Places = calls.Places(d.IntN(4))
	}
	if c.HasPlacing() && d.IntN(2) == 0 {
		c.Placing = calls.Placing(d.IntN(4))
	}

	if f.isCoalesced {
		c.Placing, c.Tensors = calls.Inside, []int{count}
		for range d.IntN(9) {
			n := d.length(0)
			c.Tensors, c.Count = append(c.Tensors, n), c.Count+n
		}
	}
	return c
}

// algorithm draws the algorithm option of a call, and its text. Kernels of libraries do not have
// all types, and are for the group of all ranks: others can be on one node, which its memory
// connects.
func (d *drawing) algorithm(g *group, c *calls.Call) (opts []ccl.CallOption, text string) {
	if len(d.Algorithms) == 0 || d.IntN(3) == 0 {
		return nil, ""
	}
	name := d.Algorithms[d.IntN(len(d.Algorithms))]
	a, ok := ccl.DefaultRegistry()[name]
	if !ok || a.Kernels[c.Coll] == nil {
		return nil, ""
	}

	shape := c.Shape()
	shape.Native = true
	if k := a.Kernels[c.Coll]; k.Native && (g.number > 0 || k.Supports(shape) != nil) {
		return nil, ""
	}
	return []ccl.CallOption{ccl.WithAlgorithm(name)}, " by " + name
}
