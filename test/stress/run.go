package stress

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl"
)

// run is a rank that runs a program.
type run struct {
	ctx    context.Context
	rank   int
	groups map[*group]*ccl.Communicator
	part   *part
	begun  []*begun
	notes  *Account // where ranks leave at random moments: errors are noted there, and the program goes on
}

// begun is what a rank has begun and will wait for.
type begun struct {
	group  *group
	part   *part
	ready  *int // the event that it needs all ranks to come to
	work   *ccl.Work
	ending ending
	began  int64     // where there are notes: when,
	noted  sync.Once // and whether its end is there
}

// ending is what is looked at when a call, a send or a receive ends.
type ending struct {
	group *group
	what  Outcome
	check func() error // looks at what a success has left in the buffers
	input func() error // looks, after an error, whether what was only read is as it was; nil: nothing was
	spoil func()       // rewrites the buffers, which are the caller's again
	kept  func() error // looks whether they are still as spoil has left them
}

// Run does the part of one rank, whose communicator, of as many ranks as the program is
// for, it gets. Once it has returned, the groups that the program has made are closed.
func (p *Program) Run(ctx context.Context, all *ccl.Communicator) (err error) {
	r := &run{ctx: ctx, rank: all.Rank(), groups: map[*group]*ccl.Communicator{p.all: all}}
	defer func() {
		delete(r.groups, p.all)
		for g, c := range r.groups {
			if closed := c.Close(); closed != nil && err == nil {
				err = fmt.Errorf("program %d, rank %d: close %s at the end: %w", p.seed, r.rank, g.name, closed)
			}
		}
	}()
	for i := range p.parts[r.rank] {
		r.part = &p.parts[r.rank][i]
		if err := r.part.ready()(r); err != nil {
			return fmt.Errorf("program %d, rank %d, event %d, %s: %w", p.seed, r.rank, r.part.event, r.part.text, err)
		}
	}
	return nil
}

// join takes the group that a call has made: none is nil.
func (r *run) join(g *group, c *ccl.Communicator, err error) error {
	if err != nil {
		return err
	}
	if g == nil || !slices.Contains(g.members, r.rank) {
		if c != nil {
			return fmt.Errorf("rank %d is not in it, and got a group of %d", r.rank, c.Size())
		}
		return nil
	}
	if c == nil {
		return fmt.Errorf("rank %d is in it, and got no group", r.rank)
	}
	r.groups[g] = c
	for rank, member := range g.members {
		if c.Size() != g.size() || c.GlobalRank(rank) != member || (member == r.rank) != (c.Rank() == rank) {
			return fmt.Errorf("it has %d ranks, of which %d is rank %d of all, and this is %d", c.Size(), rank, c.GlobalRank(rank), c.Rank())
		}
	}
	return nil
}

// ended looks at the buffers of a call that has ended, and rewrites them at once.
func (r *run) ended(e *ending, err error) error {
	if r.notes != nil {
		r.notes.ended(r.groups[e.group], e, err)
		return nil
	}
	if err == nil {
		err = e.check()
		e.spoil()
	}
	return err
}

// later notes what has been begun.
func (r *run) later(ready *int, work *ccl.Work, e *ending) {
	b := &begun{group: e.group, part: r.part, ready: ready, work: work, ending: *e}
	r.begun = append(r.begun, b)
	if r.notes != nil {
		r.notes.begins(r.groups[e.group], b)
	}
}

// settle waits for what has been begun and is asked for.
func (r *run) settle(backwards bool, asked func(*begun) bool) error {
	var now []*begun
	r.begun = slices.DeleteFunc(r.begun, func(b *begun) bool {
		if asked(b) {
			now = append(now, b)
			return true
		}
		return false
	})
	if backwards {
		slices.Reverse(now)
	}
	for _, b := range now {
		if r.notes != nil {
			r.notes.await(r.groups[b.group], b)
			continue
		}
		if err := r.ended(&b.ending, b.work.Wait(r.ctx)); err != nil {
			return fmt.Errorf("waiting for event %d, %s: %w", b.part.event, b.part.text, err)
		}
	}
	return nil
}
