package stress

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

// Options are the size of a program. New requires all fields except Algorithms.
type Options struct {
	Ranks      int
	Events     int
	Longest    int      // elements of one rank's part of a call, or of a message
	Algorithms []string // entries of ccl.yaml, named as their modules, which some calls select
}

// A Program is the calls and messages of all ranks of a job.
type Program struct {
	seed  uint64
	all   *group
	parts [][]part // by rank, in the order of events
}

// A part is one rank's part in an event.
type part struct {
	event int
	text  string
	ready func() func(r *run) error // prepares buffers and results, and returns the part itself
}

// A group is a group of ranks of the job.
type group struct {
	name    string
	number  int   // in the order of creation; 0 is the group of all ranks
	members []int // ranks of the job, in the order of the group's
	owed    int   // number of messages with one end deferred
}

func (g *group) size() int { return len(g.members) }

// drawing is a program under construction.
type drawing struct {
	*rand.Rand
	Options
	program *Program
	event   int
	made    int  // groups
	prompt  bool // no end of a message is deferred
	long    bool // no short lengths
	bursts  map[*group][]burst
	starts  []bool   // the ranks that make all their calls asynchronously; nil: drawn for each call
	groups  []*group // open groups; the first has all ranks
	owed    []owed
}

// owed is a deferred event.
type owed struct {
	due  int
	draw func()
}

// most is the largest number of open groups.
const most = 7

// New draws a program.
func New(seed uint64, o Options) *Program {
	d := newDrawing(seed, 0, o)

	d.events(8, func(g *group, t drawings) {
		switch n := d.IntN(100); {
		case n < 58:
			d.collective(g, forms[d.IntN(len(forms))])
		case n < 78:
			t.messages(d, g)
		case n < 83:
			t.gathering(d, g)
		case n < 87:
			t.exchange(d, g)
		case n < 89:
			t.crossing(d, g)

		case n < 92:
			d.newGroup(g)

		case n < 96:
			d.split(g)
		default:
			d.close(g)
		}
	})
	for rank := range o.Ranks {
		d.settle(rank)
	}
	return d.program
}

func newDrawing(seed, stream uint64, o Options) *drawing {
	all := &group{name: "all"}
	for r := range o.Ranks {
		all.members = append(all.members, r)
	}
	return &drawing{
		Rand: rand.New(rand.NewPCG(seed, stream)), Options: o, groups: []*group{all}, bursts: map[*group][]burst{},
		program: &Program{seed: seed, all: all, parts: make([][]part, o.Ranks)},
	}
}

// events draws the events of a program: deferred ones that are due, and otherwise by next,
// which may draw several. Before an event ranks may pause, one in pauses, or settle.
func (d *drawing) events(pauses int, next func(g *group, t drawings)) {
	for d.event = 1; d.event <= d.Events || len(d.owed) > 0; d.event++ {
		end := d.event > d.Events
		for rank := range d.Ranks {
			if d.IntN(pauses) == 0 {
				d.pause(rank)
			}
			if d.IntN(12) == 0 {
				d.settle(rank)
			}
		}

		if i := slices.IndexFunc(d.owed, func(o owed) bool { return end || o.due <= d.event }); i >= 0 {
			o := d.owed[i]
			d.owed = slices.Delete(d.owed, i, i+1)
			o.draw()
			continue
		}
		next(d.groups[d.IntN(len(d.groups))], types[d.IntN(len(types))])
	}
}

func (d *drawing) add(rank int, text string, do func(r *run) error) {
	d.addReady(rank, text, func() func(*run) error { return do })
}

// addReady appends a part whose buffers can be prepared before it runs.
func (d *drawing) addReady(rank int, text string, ready func() func(r *run) error) {
	d.program.parts[rank] = append(d.program.parts[rank], part{d.event, text, ready})
}

// addAll appends a part that does n things in order, each of which can be prepared before.
func (d *drawing) addAll(rank int, text string, n int, ready func(i int) func(r *run) error) {
	d.addReady(rank, text, func() func(*run) error {
		all := make([]func(*run) error, n)
		for i := range all {
			all[i] = ready(i)
		}

		return func(r *run) error {
			for _, do := range all {
				if err := do(r); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

func (d *drawing) pause(rank int) {
	delay := time.Duration(d.IntN(200)) * time.Microsecond
	d.add(rank, "pause", func(*run) error { interleave.Sleep(delay); return nil })
}

// settle makes a rank wait for the operations that it has started.
func (d *drawing) settle(rank int) {
	backwards := d.IntN(2) == 0
	now := d.event
	d.add(rank, "settle", func(r *run) error {
		return r.settle(backwards, func(b *started) bool { return *b.ready < now })
	})
}

// subset draws a subset of the ranks of a group, in any order.
func (d *drawing) subset(g *group) []int {
	return d.Perm(g.size())[:1+d.IntN(g.size())]
}

func (d *drawing) open(members []int) *group {
	d.made++
	g := &group{name: fmt.Sprintf("group %d of ranks %d", d.made, members), number: d.made, members: members}
	d.groups = append(d.groups, g)
	return g
}

func (d *drawing) newGroup(g *group) {
	if len(d.groups) == most {
		d.close(d.groups[1])
		return
	}
	named := d.subset(g)
	var members []int
	for _, r := range slices.Sorted(slices.Values(named)) {
		members = append(members, g.members[r])
	}

	made := d.open(members)
	for _, rank := range g.members {
		d.add(rank, "new_group of "+g.name+": "+made.name, func(r *run) error {
			c, err := r.groups[g].NewGroup(r.ctx, named)
			return r.join(made, c, err)
		})
	}
}

func (d *drawing) split(g *group) {
	if len(d.groups)+2 > most {
		d.close(d.groups[1])
		return
	}
	colors, keys := make([]int, g.size()), d.Perm(g.size())
	for r := range colors {
		colors[r] = d.IntN(5)/2 - 1 // -1, 0, or 1 more rarely
		if d.IntN(2) == 0 {
			keys[r] = 0
		}
	}

	made := map[int]*group{}
	for color := range 2 {
		var members []int
		for key := range g.size() {
			for r, rank := range g.members {
				if colors[r] == color && keys[r] == key {
					members = append(members, rank)
				}
			}
		}

		if members != nil {
			made[color] = d.open(members)
		}
	}

	for r, rank := range g.members {
		text := "split of " + g.name
		joined := made[colors[r]]
		if joined != nil {
			text += ": " + joined.name
		}
		d.add(rank, text, func(run *run) error {
			c, err := run.groups[g].Split(run.ctx, colors[r], keys[r])
			return run.join(joined, c, err)
		})
	}
}

// close closes a group, unless it has all ranks or a deferred event.
func (d *drawing) close(g *group) {
	if g == d.groups[0] || g.owed > 0 {
		return
	}

	d.groups = slices.DeleteFunc(d.groups, func(o *group) bool { return o == g })
	backwards := d.IntN(2) == 0
	for _, rank := range g.members {
		d.add(rank, "close "+g.name, func(r *run) error {
			err := r.settle(backwards, func(b *started) bool { return b.ending.group == g })
			if err == nil {
				err = r.groups[g].Close()
			}
			delete(r.groups, g)
			return err
		})
	}
}

// length draws a number of elements, at least least, mostly small.
func (d *drawing) length(least int) int {
	limit := d.Longest
	if d.long {
		return 300 + d.IntN(1200)
	}
	switch d.IntN(10) {
	case 0, 1, 2:
		limit = 4
	case 3, 4, 5, 6:
		limit = 40
	case 7, 8:
		limit = 600
	}

	return least + d.IntN(min(limit, d.Longest)+1-least)
}
