package stress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// A Way is how a rank leaves.
type Way string

const (
	Close   Way = "close"   // Communicator.Close of each of its groups
	Abort   Way = "abort"   // the same after Communicator.Abort
	Destroy Way = "destroy" // Exits.Destroy, once for all groups
	Return  Way = "return"  // the caller of Run ends the rank's worker without an error
	Fail    Way = "fail"    // the same with an error, which aborts the rank's groups
	Kill    Way = "kill"    // its process ends, by Departures.Kill
)

// Departures are random programs in which ranks leave at random moments.
type Departures struct {
	program *Program
	groups  []*group // the first has all ranks
	leaves  [][]leave
	ends    []leave // of ranks that reach the end
}

// A leave is when and how a rank leaves a group, or all groups if that is nil.
type leave struct {
	event   int
	group   *group
	way     Way
	beside  bool          // in another goroutine, while calls run
	delay   time.Duration // after the event
	further int           // number of events that the rank tries afterwards
}

// Exits replace the functions of package ccl by which a rank makes and leaves groups. A nil
// field stands for package ccl's own function.
type Exits struct {
	NewGroup func(ranks []int) (c *ccl.Communicator, leave func() error, err error)
	Destroy  func() error
	Account  *Account // of Run; nil: a new one
}

// NewDepartures draws a program in which ranks leave in the given ways.
func NewDepartures(seed uint64, o Options, ways ...Way) *Departures {
	d := newDrawing(seed, 1, o)
	// A rank whose worker returns leaves once its calls and sends are done. The ranks that
	// these wait for must not wait for that rank.
	d.prompt = slices.Contains(ways, Return)
	for range d.IntN(6) {
		members := d.Perm(o.Ranks)[:2+d.IntN(o.Ranks-1)]
		slices.Sort(members)
		d.open(members)
	}

	// A call after a departure fails the group, and that ends all messages. Where there are no calls,
	// messages outlive departures.
	groups, hasCalls := slices.Clone(d.groups), d.IntN(3) > 0
	d.events(12, func(g *group, t drawings) {
		switch n := d.IntN(100); {
		case n < 60 && hasCalls:
			d.burst(g)
		case n < 40 || n >= 90:
			t.fromAny(d, g)
		case n < 80:
			t.messages(d, g)

		default:
			t.exchange(d, g)
		}
	})

	for _, i := range d.Perm(len(groups)) {
		if hasCalls {
			d.burst(groups[i])
		}
		d.event++
	}

	q := &Departures{program: d.program, groups: groups, leaves: make([][]leave, o.Ranks)}
	for _, g := range groups {
		if len(groups) == 1 || d.IntN(4) > 0 {
			for _, r := range d.subset(g) {
				rank := g.members[r]
				q.leaves[rank] = append(q.leaves[rank], d.leave(g, ways))
			}
		}
	}
	for _, leaves := range q.leaves {
		slices.SortStableFunc(leaves, func(a, b leave) int { return a.event - b.event })
	}

	for range o.Ranks {
		q.ends = append(q.ends, leave{way: ways[d.IntN(len(ways))], delay: time.Duration(d.IntN(2))})
	}
	return q
}

// A burst is a run of calls of one kind without a pause.
type burst struct{ first, last int }

func (d *drawing) burst(g *group) {
	f := forms[d.IntN(len(forms))]
	if d.IntN(3) == 0 {
		f = form{coll: ccl.CollAllReduce}
	}
	if d.IntN(3) > 0 {
		for range d.Ranks {
			d.starts = append(d.starts, d.IntN(2) == 0)
		}
	}

	d.long = d.IntN(2) == 0
	b := burst{first: d.event}
	for range d.IntN(24) {
		d.collective(g, f)
		d.event++
	}
	d.collective(g, f)
	b.last = d.event
	d.bursts[g] = append(d.bursts[g], b)
	d.long, d.starts = false, nil
}

// leave draws when and how a rank leaves a group, or all groups if it is the first: mostly
// while a burst runs or is queued.
func (d *drawing) leave(g *group, ways []Way) leave {
	l := leave{event: 1 + d.IntN(d.event), way: ways[d.IntN(len(ways))], further: d.IntN(3)}
	if bursts := d.bursts[g]; len(bursts) > 0 && d.IntN(5) > 0 {
		b := bursts[len(bursts)-1-d.IntN(min(len(bursts), 2))]
		if l.event = b.last + 1; d.IntN(2) == 0 {
			l.event = b.first + d.IntN(b.last-b.first+1)
		}
	}

	switch d.IntN(4) {
	case 0:
	case 1:
		l.delay = time.Duration(d.IntN(200)) * time.Microsecond
	default:
		l.delay = time.Duration(d.IntN(30_000))
	}
	if g.number > 0 {
		l.group, l.way = g, Close
	}
	l.beside = l.way != Return && l.way != Fail && d.IntN(2) == 0
	return l
}

// NewAccount returns a rank's account, for Exits.
func (p *Departures) NewAccount(rank int) *Account {
	return &Account{Rank: rank, Left: make([]*Leaving, len(p.groups))}
}

// Run does the part of one rank. all is its communicator, with the program's number of
// ranks. Run returns the rank's account, and an error if a group could not be made. If the
// account's Way is Return or Fail the caller must then end the rank's worker in that way.
// After that it must settle the account.
func (p *Departures) Run(ctx context.Context, all *ccl.Communicator, exits Exits) (*Account, error) {
	rank, a := all.Rank(), exits.Account
	if a == nil {
		a = p.NewAccount(rank)
	}
	a.noted = time.Now()
	r := &run{ctx: ctx, rank: rank, groups: map[*group]*ccl.Communicator{p.program.all: all}, notes: a}
	x := &exiting{run: r, program: p, exits: exits, leave: map[*group]func() error{p.program.all: all.Close}}
	parts := p.program.parts[rank]
	todo := make([]func(*run) error, len(parts))
	for i := range parts {
		todo[i] = parts[i].ready()
	}

	if err := x.begin(); err != nil {
		_, a.wasHeldUp = errors.AsType[*transport.TimeoutError](err)
		return a, errors.Join(err, x.giveUp())
	}

	leaves, stop := p.leaves[rank], -1

	for i := range parts {
		r.part = &parts[i]
		for len(leaves) > 0 && leaves[0].event <= r.part.event {
			l := leaves[0]
			leaves = leaves[1:]
			if !x.take(l) {
				return a, nil
			}
			if l.group == nil && !l.beside && stop < 0 {
				stop = r.part.event + l.further
			}
		}

		if stop >= 0 && r.part.event >= stop {
			break
		}
		if err := todo[i](r); err != nil {
			a.report("event %d, %s: %v", r.part.event, r.part.text, err)
		}
	}
	x.beside.Wait()
	x.end(p.ends[rank])
	return a, nil
}

// Kill notes that the process of a rank has been killed, in the middle of Run or before. No other
// goroutine uses the account any more.
func (p *Departures) Kill(a *Account) {
	a.Way = Kill
	for i, g := range p.groups {
		if a.Left[i] == nil && slices.Contains(g.members, a.Rank) {
			a.Left[i] = &Leaving{Way: Kill, Started: interleave.Moment()}
		}
	}
}

// Stall notes that the process of a rank stands still for longer than calls wait.
func (a *Account) Stall() {
	if !a.isStalled {
		a.isStalled, a.stalledAt = true, interleave.Moment()
	}
}

// CutOff notes that a process can no more reach another one.
func (a *Account) CutOff() {
	a.Stall()
	if a.cutOff == nil {
		a.cutOff = &Leaving{Way: Kill, Started: interleave.Moment()}
	}
}

// exiting is a rank that leaves.
type exiting struct {
	*run
	program *Departures
	exits   Exits
	leave   map[*group]func() error
	beside  interleave.WaitGroup
}

// begin makes the groups.
func (x *exiting) begin() error {
	groups := x.program.groups
	for _, g := range groups[1:] {
		if err := x.open(g); err != nil {
			return err
		}
	}
	if err := x.groups[groups[0]].Barrier(x.ctx); err != nil {
		return fmt.Errorf("the first barrier: %w", err)
	}
	return nil
}

// giveUp leaves the groups that were made.
func (x *exiting) giveUp() (err error) {
	x.notes.leave(x.program.groups, Close)
	for _, g := range x.program.groups {
		if leave := x.leave[g]; leave != nil {
			err = errors.Join(err, leave())
		}
	}
	return err
}

func (x *exiting) open(g *group) error {
	var c *ccl.Communicator
	var err error
	if x.exits.NewGroup == nil {
		if c, err = x.groups[x.program.program.all].NewGroup(x.ctx, g.members); c != nil {
			x.leave[g] = c.Close
		}
	} else {
		c, x.leave[g], err = x.exits.NewGroup(g.members)
	}

	if err := x.join(g, c, err); err != nil {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	return nil
}

// errGone is why ranks abort their groups.
var errGone = errors.New("this rank has had enough")

// take leaves in the way of l, and reports whether the program continues.
func (x *exiting) take(l leave) (goOn bool) {
	if l.beside {
		x.beside.Go(func() {
			interleave.Compute(l.delay)
			x.depart(l)
		})
		return true
	}
	interleave.Compute(l.delay)
	if l.way == Return || l.way == Fail {
		x.beside.Wait()
	}

	x.depart(l)
	return l.way != Return && l.way != Fail
}

func (x *exiting) depart(l leave) {
	var groups []*group
	for _, g := range x.program.groups {
		if (l.group == nil || l.group == g) && slices.Contains(g.members, x.rank) {
			groups = append(groups, g)
		}
	}

	a := x.notes
	switch l.way {
	case Return, Fail:
		a.leave(groups, l.way)
		a.Way = l.way
	case Destroy:
		a.leave(groups, l.way)
		a.noteError(groups, x.exits.Destroy())
	default:
		for _, g := range groups {
			alone := []*group{g}
			if first := a.leave(alone, l.way); first && l.way == Abort { // after a Close it has no effect
				x.groups[g].Abort(errGone)
			}
			a.noteError(alone, x.leave[g]())
		}
	}
}

// end leaves the groups in which the rank still is.
func (x *exiting) end(l leave) {
	if l.way != Return || l.delay > 0 {
		_ = x.settle(false, func(*started) bool { return true })
	}
	x.take(leave{way: l.way})
}
