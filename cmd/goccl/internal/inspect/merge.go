// Package inspect finds out from flight recorders where the ranks of a job are, and where they
// first differ, for `goccl inspect`.
//
// # Model
//
// Merge joins the documents of several writers. A rank's own document, another rank's and the
// launcher's may have the same call in different states; the later state is the true one. Calls are
// compared per group and number. A lane keeps the last calls only, so a call that is older than all
// that a rank has kept says nothing about that rank.
package inspect

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport/shm"
)

// Records are those of one job from all documents.
type Records struct {
	Name    string
	Size    int
	Writers []string
	Others  []string        // other jobs that documents were found of
	Ranks   []flight.Rank   // in order
	Written time.Time       // the last document
	Running *shm.RunningJob // nil: these are documents
	Unread  []error         // why files in the directory were not read
}

// Merge joins the documents of the job that wrote last. There must be at least one.
func Merge(documents []*flight.Document) *Records {
	last := slices.MaxFunc(documents, func(a, b *flight.Document) int { return a.Written.Compare(b.Written) })
	j := &Records{Name: last.Job, Size: last.Size, Written: last.Written}
	ranks := map[int]flight.Rank{}

	for _, d := range documents {
		if d.Job != j.Name {
			j.Others = append(j.Others, d.Job)
			continue
		}

		j.Writers = append(j.Writers, d.Writer)
		for _, r := range d.Ranks {
			known, ok := ranks[r.Rank]
			if !ok {
				known = flight.Rank{Rank: r.Rank, PID: r.PID}
			}
			ranks[r.Rank] = mergeRanks(known, r)
		}
	}

	slices.Sort(j.Others)
	j.Others = slices.Compact(j.Others)
	for _, rank := range slices.Sorted(maps.Keys(ranks)) {
		j.Ranks = append(j.Ranks, ranks[rank])
	}
	return j
}

func mergeRanks(a, b flight.Rank) flight.Rank {
	groups := slices.Clone(a.Groups)
	for _, g := range b.Groups {
		i := slices.IndexFunc(groups, func(known flight.GroupCalls) bool { return known.ID == g.ID })
		if i < 0 {
			groups = append(groups, g)
			continue
		}
		groups[i].Left = groups[i].Left || g.Left
		groups[i].Calls = mergeByNumber(groups[i].Calls, g.Calls,
			func(c flight.Call) uint64 { return c.Number }, func(c, d flight.Call) bool { return c.State.After(d.State) })
	}

	a.Groups = groups
	a.Messages = mergeByNumber(a.Messages, b.Messages,
		func(m flight.Message) uint64 { return m.Number }, func(m, n flight.Message) bool { return m.State.After(n.State) })
	a.Marks = mergeByNumber(a.Marks, b.Marks,
		func(m flight.Mark) uint64 { return m.Number }, func(flight.Mark, flight.Mark) bool { return false })
	return a
}

// mergeByNumber returns the elements of a and b in the order of their numbers; of two with the same
// number the later one.
func mergeByNumber[T any](a, b []T, number func(T) uint64, later func(x, y T) bool) []T {
	byNumber := make(map[uint64]T, len(a)+len(b))
	for _, x := range slices.Concat(a, b) {
		if known, ok := byNumber[number(x)]; !ok || later(x, known) {
			byNumber[number(x)] = x
		}
	}
	return slices.SortedFunc(maps.Values(byNumber), func(x, y T) int { return cmp.Compare(number(x), number(y)) })
}
