package ccltest

import (
	"cmp"
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
)

// attempt is one rank's part of a call in its group.
type attempt struct {
	calls.Attempt
	rank *rank
}

func (r *rank) attempt(c *calls.Call) attempt {
	return attempt{calls.NewAttempt(c, r.me, r.g.s.rankOrdered), r}
}

func (a attempt) call(ctx context.Context, opts ...ccl.CallOption) error {
	err := a.Make(ctx, a.rank.comm, opts...)
	if err == nil {
		a.rank.trace.set(outside, 0)
	}
	a.rank.g.alive.Add(1)
	return err
}

// shapeOf returns the shape that the engine passes to a kernel's Supports.
func (g *group) shapeOf(c *calls.Call) ccl.Shape {
	s := c.Shape()
	s.Nodes, s.Topology, s.Native = g.nodes, g.settings.Topology(), g.native
	return s
}

// supported returns the jobs that the kernel supports, each with a salt of its own. It
// returns an error if it supports none.
func (g *group) supported(jobs []*calls.Call) ([]*calls.Call, error) {
	var can []*calls.Call
	var why error
	for _, j := range jobs {
		_, err := g.settings.Choose(g.shapeOf(j), "")
		if err != nil {
			why = cmp.Or(why, err)
			continue
		}

		j.Salt = calls.Mix(uint64(len(can)))
		can = append(can, j)
	}
	if len(can) == 0 && why != nil {
		return nil, &skipped{why: fmt.Sprintf("the kernel supports none of %d calls on %d ranks", len(jobs), len(g.ranks)), cause: why}
	}
	return can, nil
}
