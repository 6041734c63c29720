package launcher

import (
	"slices"

	"github.com/goccl/goccl/internal/launchenv"
)

// A Cause says how the ranks in EndedError.Blamed made the job fail.
type Cause int

const (
	// CauseFailed: the rank failed by itself, before all others.
	CauseFailed Cause = iota
	// CauseLeft: the rank left its group, or ended in an orderly way, while others needed it.
	CauseLeft
	// CauseSilent: others waited for the ranks in vain.
	CauseSilent
	// CauseCircle: the ranks waited for each other.
	CauseCircle
	// CauseUnknown: all ranks that failed say that they did because of others, and do not
	// say which.
	CauseUnknown
)

// consequence reports whether the rank says that it failed because of other ranks.
func (r *Rank) consequence() bool {
	return r.Report != nil && r.Report.Because != "" && r.Report.Because != launchenv.BecauseCanceled &&
		!slices.Contains(r.Report.Ranks, r.Report.Rank)
}

// own reports whether the rank failed by itself, and when: by its report, or by its death
// without one.
func (r *Rank) own() bool {
	if r.Report == nil {
		return r.ended && r.failed()
	}
	return !r.consequence() && (r.Report.Because != launchenv.BecauseTimeout) && (r.Report.Kind != launchenv.FailedCall || r.ended && r.failed())
}

// blame finds the root cause of a job's failure. A rank that failed by itself is the
// cause, the first of several; a report tells the time more exactly than the launcher,
// which sees deaths late and in any order. If there is none, the cause are the ranks that
// others name in their reports, unless they name further ones in turn. first is the rank
// that the launcher has seen fail first; the reporter is the rank whose report says it.
func blame(ranks []Rank, first int) (cause Cause, blamed []int, reporter int) {
	lost := make(map[int]bool) // others have seen it go
	for i := range ranks {
		if r := &ranks[i]; r.consequence() && r.Report.Because == launchenv.BecausePeerLost {
			for _, peer := range r.Report.Ranks {
				lost[peer] = true
			}
		}
	}
	root := -1
	for i := range ranks {
		if !ranks[i].own() {
			continue
		}
		if root < 0 || before(&ranks[i], lost[i], &ranks[root], lost[root]) {
			root = i
		}
	}
	if root >= 0 {
		return CauseFailed, []int{root}, root
	}

	// The first to say so has seen most.
	var reporters []int
	for i := range ranks {
		if r := ranks[i].Report; r != nil && r.Because != "" && r.Because != launchenv.BecauseCanceled {
			reporters = append(reporters, i)
		}
	}
	slices.SortStableFunc(reporters, func(a, b int) int { return ranks[a].Report.Time.Compare(ranks[b].Report.Time) })
	cause = CauseUnknown
	for _, i := range reporters {
		r := ranks[i].Report
		var roots []int
		for _, peer := range r.Ranks {
			if peer >= 0 && peer < len(ranks) && !ranks[peer].consequence() {
				roots = append(roots, peer)
			}
		}
		if len(roots) > 0 {
			cause = CauseLeft
			if r.Because == launchenv.BecauseTimeout {
				cause = CauseSilent
			}
			return cause, roots, i
		}
		for _, peer := range r.Ranks {
			if peer >= 0 && peer < len(ranks) && !slices.Contains(blamed, peer) {
				cause, blamed = CauseCircle, append(blamed, peer)
			}
		}
	}
	if cause == CauseCircle {
		slices.Sort(blamed)
		return cause, blamed, reporters[0]
	}
	return CauseUnknown, []int{first}, first
}

// before reports whether a failed by itself before b did. Of two that died without a
// report, that is the one that others have seen go.
func before(a *Rank, aLost bool, b *Rank, bLost bool) bool {
	if a.Report == nil && b.Report == nil && aLost != bLost {
		return aLost
	}
	return a.when().Before(b.when())
}
