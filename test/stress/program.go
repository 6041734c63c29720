package stress

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
)

// Options say how large a program is. Their zero values are none that New takes.
type Options struct {
	Ranks      int
	Events     int
	Longest    int      // elements of one rank's part of a call, or of a message
	Algorithms []string // entries of ccl.yaml, named as their modules, which calls name now and then
}

// A Program is what the ranks of a job do.
type Program struct {
	seed  uint64
	all   *group
	parts [][]part // by rank, in the order of events
}

// A part is what one rank does in an event.
type part struct {
	event int
	text  string
	ready func() func(r *run) error // prepares buffers and results; what it returns does the part
}

// A group is one of ranks of the job.
type group struct {
	name    string
	number  int   // of those that a program makes; 0 is the group of all ranks
	members []int // ranks of the job, in the order of the group's
	owed    int   // messages of which one end is put off
}

func (g *group) size() int { return len(g.members) }

// drawing is a program that is being drawn.
type drawing struct {
	*rand.Rand
	Options
	program *Program
	event   int
	made    int  // groups
	prompt  bool // no end of a message is put off
	long    bool // no lengths of a few elements
	bursts  map[*group][]burst
	begins  []bool   // which ranks begin all their calls and wait later; nil: each as it likes
	groups  []*group // that are open; the first is that of all ranks
	owed    []owed
}

// owed is an event that is put off.
type owed struct {
	due  int
	draw func()
}

// most is how many groups a program has open at most.
const most = 7

// New draws a program.
func New(seed uint64, o Options) *Program {
	p := &Program{seed: seed, parts: make([][]part, o.Ranks)}
	d := &drawing{Rand: rand.New(rand.NewPCG(seed, 0)), Options: o, program: p}
	all := &group{name: "all"}
	for r := range o.Ranks {
		all.members = append(all.members, r)
	}
	p.all, d.groups = all, []*group{all}
	for d.event = 1; d.event <= o.Events || len(d.owed) > 0; d.event++ {
		d.draw(d.event > o.Events)
	}
	for rank := range o.Ranks {
		d.settle(rank)
	}
	return p
}

// draw draws an event, and what ranks do before it. At the end there is nothing new.
func (d *drawing) draw(end bool) {
	for rank := range d.Ranks {
		if d.IntN(8) == 0 {
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
		return
	}
	g, t := d.groups[d.IntN(len(d.groups))], types[d.IntN(len(types))]
	switch n := d.IntN(100); {
	case n < 58:
		t.collective(d, g, kinds[d.IntN(len(kinds))])
	case n < 78:
		t.messages(d, g)
	case n < 84:
		t.gathering(d, g)
	case n < 88:
		t.exchange(d, g)
	case n < 92:
		d.newGroup(g)
	case n < 96:
		d.split(g)
	default:
		d.close(g)
	}
}

// add adds a part to a rank's.
func (d *drawing) add(rank int, text string, do func(r *run) error) {
	d.addReady(rank, text, func() func(*run) error { return do })
}

// addReady adds a part whose buffers can be prepared before its turn.
func (d *drawing) addReady(rank int, text string, ready func() func(r *run) error) {
	d.program.parts[rank] = append(d.program.parts[rank], part{d.event, text, ready})
}

// pause lets a rank be late.
func (d *drawing) pause(rank int) {
	delay := time.Duration(d.IntN(200)) * time.Microsecond
	d.add(rank, "pause", func(*run) error { time.Sleep(delay); return nil })
}

// settle lets a rank wait for what it has begun.
func (d *drawing) settle(rank int) {
	backwards := d.IntN(2) == 0
	now := d.event
	d.add(rank, "settle", func(r *run) error {
		return r.settle(backwards, func(b *begun) bool { return *b.ready < now })
	})
}

// some draws some of the ranks of a group, in any order.
func (d *drawing) some(g *group) []int {
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
	named := d.some(g)
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
		mine := made[colors[r]]
		if mine != nil {
			text += ": " + mine.name
		}
		d.add(rank, text, func(run *run) error {
			c, err := run.groups[g].Split(run.ctx, colors[r], keys[r])
			return run.join(mine, c, err)
		})
	}
}

// close closes a group, if nothing is put off there; that of all ranks stays.
func (d *drawing) close(g *group) {
	if g == d.groups[0] || g.owed > 0 {
		return
	}
	d.groups = slices.DeleteFunc(d.groups, func(o *group) bool { return o == g })
	backwards := d.IntN(2) == 0
	for _, rank := range g.members {
		d.add(rank, "close "+g.name, func(r *run) error {
			err := r.settle(backwards, func(b *begun) bool { return b.group == g })
			if err == nil {
				err = r.groups[g].Close()
			}
			delete(r.groups, g)
			return err
		})
	}
}

// length draws a number of elements, mostly small, from least on.
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

// algorithm draws an option of a call, and its text.
func (d *drawing) algorithm(coll ccl.Collective) (opts []ccl.CallOption, text string) {
	if len(d.Algorithms) == 0 || d.IntN(3) == 0 {
		return nil, ""
	}
	name := d.Algorithms[d.IntN(len(d.Algorithms))]
	a, ok := ccl.DefaultRegistry().Lookup(name)
	if !ok || a.Kernels[coll] == nil {
		return nil, ""
	}
	return []ccl.CallOption{ccl.WithAlgorithm(name)}, " by " + name
}
