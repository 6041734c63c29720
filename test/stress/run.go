package stress

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
)

// run is a rank that runs a program.
type run struct {
	ctx     context.Context
	rank    int
	groups  map[*group]*ccl.Communicator
	part    *part
	started []*started
	notes   *Account // in Departures: records errors, and the program continues
}

// started is an operation that a rank has started and will wait for.
type started struct {
	part   *part
	ready  *int // the event that all ranks must reach before it can end
	work   *ccl.Work
	ending ending
	// With notes: its communicator, the time of its start, and whether its end was noted.
	comm  *ccl.Communicator
	at    int64
	noted interleave.Once
}

// ending contains the checks at the end of a call, a send or a receive.
type ending struct {
	group     *group
	what      Outcome
	check     func() error // checks the buffers after a success
	input     func() error // checks, after an error, that buffers that are only read are unchanged; nil: none
	spoil     func()       // overwrites the buffers, which are the caller's again
	untouched func() error // checks that they have not changed since spoil
}

// Run does the part of one rank. all is its communicator, with the program's number of
// ranks. Before it returns Run closes the groups that the program has made; after an error it
// aborts them, and all.
func (p *Program) Run(ctx context.Context, all *ccl.Communicator) (err error) {
	r := &run{ctx: ctx, rank: all.Rank(), groups: map[*group]*ccl.Communicator{p.all: all}}
	defer func() {
		open := slices.SortedFunc(maps.Keys(r.groups), func(g, h *group) int { return g.number - h.number })
		for _, g := range open {
			if err != nil {
				r.groups[g].Abort(err)
			}
		}

		for _, g := range open {
			if g == p.all {
				continue
			}
			if closed := r.groups[g].Close(); closed != nil && err == nil {
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

// join records the group that a call has made; nil: none.
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

// ended checks the buffers of a call that has ended, and overwrites them at once.
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

func (r *run) later(ready *int, work *ccl.Work, e *ending) {
	b := &started{part: r.part, ready: ready, work: work, ending: *e}
	r.started = append(r.started, b)
	if r.notes != nil {
		r.notes.starts(r.groups[e.group], b)
	}
}

// settle waits for the started operations that asked selects.
func (r *run) settle(backwards bool, asked func(*started) bool) error {
	var now []*started
	r.started = slices.DeleteFunc(r.started, func(b *started) bool {
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
			r.notes.await(b)
			continue
		}
		if err := r.ended(&b.ending, b.work.Wait(r.ctx)); err != nil {
			return fmt.Errorf("waiting for event %d, %s: %w", b.part.event, b.part.text, err)
		}
	}
	return nil
}
