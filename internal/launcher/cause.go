package launcher

import (
	"slices"

	"github.com/goccl/goccl/internal/launchenv"
)

// Cause is how the ranks in EndedError.Blamed made the job fail.
type Cause int

const (
	// CauseFailed: the rank failed by itself, before all others.
	CauseFailed Cause = iota
	// CauseLeft: the rank left its group, or ended in an orderly way, while others needed it.
	CauseLeft
	// CauseSilent: others timed out waiting for the ranks.
	CauseSilent
	// CauseCircle: the ranks waited for each other.
	CauseCircle
	// CauseDeadlock: each of the ranks waited for a message of the next, and the last for one of the
	// first.
	CauseDeadlock
	// CauseMismatch: the ranks made another call than the others.
	CauseMismatch
	// CauseUnknown: all ranks that failed report that others caused it, but not which.
	CauseUnknown
)

// consequence reports whether the rank reported that other ranks made it fail.
func (r *Rank) consequence() bool {
	return r.Report != nil && r.Report.IsConsequence() && r.Report.Because != launchenv.BecauseCanceled
}

// own reports whether the rank failed by itself, and when: by its report, or by its death
// without one.
func (r *Rank) own() bool {
	if r.Report == nil {
		return r.ended && r.Failed()
	}
	return !r.consequence() && (r.Report.Because != launchenv.BecauseTimeout) && (r.Report.Kind != launchenv.FailedCall || r.ended && r.Failed())
}

// blame finds the root cause of a job's failure. The cause is the first rank that failed
// by itself; a report has a more exact time than the launcher, which sees deaths late and
// in any order. Otherwise the causes are the ranks that reports name, unless their own
// reports name others. first is the rank that the launcher saw fail first; reporter is the
// rank whose report names the cause.
func blame(ranks []Rank, first int) (cause Cause, blamed []int, reporter int) {
	lost := make(map[int]bool) // others have lost it
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
		if r := ranks[root].Report; r != nil && r.Because == launchenv.BecauseMismatch {
			none := func(rank int) bool { return rank < 0 || rank >= len(ranks) }
			return CauseMismatch, slices.DeleteFunc(slices.Clone(r.Ranks), none), root
		}
		return CauseFailed, []int{root}, root
	}

	// The first report has seen most.
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
		if r.Because == launchenv.BecauseTimeout && len(r.Ranks) == 1 {
			if circle, _ := followWaits(ranks, r.Ranks[0]); circle != nil {
				return CauseDeadlock, circle, i
			}
		}
		if len(roots) > 0 {
			switch r.Because {
			case launchenv.BecauseTimeout:
				return CauseSilent, roots, i
			case launchenv.BecauseMismatch:
				return CauseMismatch, roots, i
			}
			return CauseLeft, roots, i
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

// followWaits follows the waits from a rank, by the ranks' own reports: the error of a failed group
// is the same on all ranks and names one of them. It returns the circle in which they end, from its
// lowest rank, or the rank at which the reports end.
func followWaits(ranks []Rank, from int) (circle []int, end int) {
	for at := from; ; {
		if i := slices.Index(circle, at); i >= 0 {
			if circle = circle[i:]; len(circle) == 1 {
				return nil, at // it waited for its own message
			}
			low := slices.Index(circle, slices.Min(circle))
			return slices.Concat(circle[low:], circle[:low]), -1
		}
		if at < 0 || at >= len(ranks) {
			return nil, -1
		}
		r := ranks[at].Report
		if r == nil || r.Because != launchenv.BecauseTimeout || r.Awaited == nil {
			return nil, at
		}
		circle, at = append(circle, at), *r.Awaited
	}
}

// before reports whether a failed by itself before b did. Of two that died without a
// report, the one that others have lost did.
func before(a *Rank, aLost bool, b *Rank, bLost bool) bool {
	if a.Report == nil && b.Report == nil && aLost != bLost {
		return aLost
	}
	return a.when().Before(b.when())
}
