package inspect

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/text"
)

// Group is one group of a job.
type Group struct {
	ID, Name string
	Size     int
	Members  []Member // those with records, by their rank in the group
}

// Member is a rank of a group.
type Member struct {
	Rank   int // in the group
	Global int // in the job
	Left   bool
	Calls  []flight.Call // the oldest first
}

// Title returns the group's name for people.
func (g *Group) Title() string {
	if g.Name == "" {
		return "all ranks"
	}
	return "group " + g.Name
}

// Groups returns the groups of the job: the first group, then the others by name.
func (j *Records) Groups() []*Group {
	var all []*Group
	byID := map[string]*Group{}

	for _, r := range j.Ranks {
		for _, c := range r.Groups {
			g := byID[c.ID]
			if g == nil {
				g = &Group{ID: c.ID, Name: c.Name, Size: c.Size}
				byID[c.ID] = g
				all = append(all, g)
			}
			g.Members = append(g.Members, Member{Rank: c.Rank, Global: r.Rank, Left: c.Left, Calls: c.Calls})
		}
	}

	for _, g := range all {
		slices.SortFunc(g.Members, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Global, b.Global)) })
	}
	slices.SortFunc(all, func(a, b *Group) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}

// Difference is the first call on which ranks of a group differ.
type Difference struct {
	Number uint64
	Calls  []Variant // that ranks made
	Absent []Member  // ranks that have not come to that call
}

// Variant is a call and the members that made it.
type Variant struct {
	What    string
	Members []Member
}

// Difference returns the first call that not all members have made in the same way, or nil. Members
// without records are not compared.
func (g *Group) Difference() *Difference {
	numbers := map[uint64]bool{}
	for _, m := range g.Members {
		for _, c := range m.Calls {
			numbers[c.Number] = true
		}
	}

	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		d := &Difference{Number: n}
		for _, m := range g.Members {
			i, found := slices.BinarySearchFunc(m.Calls, n, func(c flight.Call, n uint64) int { return cmp.Compare(c.Number, n) })
			switch {
			case found:
				d.add(m, m.Calls[i])
			case i == len(m.Calls):
				d.Absent = append(d.Absent, m)
			}
		}

		if len(d.Calls) > 1 || len(d.Absent) > 0 {
			return d
		}
	}
	return nil
}

func (d *Difference) add(m Member, c flight.Call) {
	if c.State == flight.StateStarting {
		return // nothing but its number is known
	}
	what := signature(c)
	i := slices.IndexFunc(d.Calls, func(v Variant) bool { return v.What == what })
	if i < 0 {
		i = len(d.Calls)
		d.Calls = append(d.Calls, Variant{What: what})
	}
	d.Calls[i].Members = append(d.Calls[i].Members, m)
}

// signature returns what ranks have to agree on, as text.
func signature(c flight.Call) string {
	if c.State == flight.StateRejected {
		return "rejected"
	}
	c.Label, c.State = "", ""
	_, what, _ := strings.Cut(strings.TrimSuffix(c.String(), " ()"), ", ")
	return what
}

// ranksText returns the members as text, such as "rank 3" or "ranks 0-2, 5", by their numbers in
// the job.
func ranksText(members []Member) string {
	var ranks []int
	for _, m := range members {
		ranks = append(ranks, m.Global)
	}
	slices.Sort(ranks)
	return text.Ranks(ranks)
}
