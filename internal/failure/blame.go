package failure

import (
	"cmp"
	"slices"
	"time"
)

// Rank is what is known of one rank of a job.
type Rank struct {
	// HasFailed: the rank has ended by a failure.
	HasFailed bool
	// Report is why, as the rank itself says; nil if it said nothing.
	Report *Report
	// Ended is when the rank ended, if it has. A report has a more exact time.
	Ended time.Time
}

// Report is why a rank failed.
type Report struct {
	Kind    Kind  // how other ranks made it fail; 0 if it failed by itself
	Ranks   []int // of the job; those that Kind is about, as far as the error names them
	Awaited *int  // the rank whose message the failed call waited for; nil if none
	Time    time.Time
	Text    string // of the error; "" if it is not known
	// IsJoining: the rank has not joined the others.
	IsJoining bool
	// MayRecover: a call has failed, and the program may go on.
	MayRecover bool
}

// Cause is how ranks made a job fail.
type Cause int

// Causes of a job's failure.
const (
	ByItself   Cause = iota // the rank failed by itself, before all others
	Left                    // the rank left its group, or ended in an orderly way, while others needed it
	Silent                  // others timed out waiting for the ranks
	Circle                  // the ranks waited for each other
	Deadlock                // each rank waited for a message of the next, and the last for one of the first
	Difference              // the ranks made another call than the others, or brought another value
	Unknown                 // all ranks that failed report that others caused it, but not which
	Alike                   // the ranks had the same error, and all others of their call got it
)

// Verdict says who made a job fail, and how.
type Verdict struct {
	Cause    Cause
	Blamed   []int // nil if Cause is Unknown
	Reporter int   // the rank whose report names the cause; -1 if Cause is Unknown
	// Order has all ranks that have failed: first the causes, in the order of time, then those that
	// waited in vain, then those whose context ended, then those that others made fail.
	Order []int
}

// Weights of ranks in the order of a verdict.
const (
	byItself = iota
	waited
	canceled
	byOthers
	hasNotFailed
)

// Blame finds the root cause of a job's failure. It is the first rank that failed by itself.
//
// If there is none, the causes are the ranks that reports name, unless their own reports name
// others. A rank that was lost by others died before one that was not, where neither reported.
func Blame(ranks []Rank) Verdict {
	named := NamedBy(ranks)
	weights := make([]int, len(ranks))
	order := []int{}
	for i, r := range ranks {
		weights[i] = r.weigh(i, named[i])
		if weights[i] != hasNotFailed {
			order = append(order, i)
		}
	}

	bounds := latestTimes(ranks, named)
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(weights[a], weights[b]), bounds[a].Compare(bounds[b]), ranks[a].when().Compare(ranks[b].when()))
	})

	v := Verdict{Cause: Unknown, Reporter: -1, Order: order}
	at := slices.IndexFunc(order, func(i int) bool { return weights[i] == byItself || weights[i] == canceled })
	if at < 0 {
		v.followReports(ranks)
		return v
	}

	root := order[at]
	v.Cause, v.Blamed, v.Reporter = ByItself, []int{root}, root
	if r := ranks[root].Report; r != nil && len(ranks) > 1 && (r.Kind == Shared || r.Kind.IsDifference()) {
		v.Cause, v.Blamed = r.Kind.cause(), within(r.Ranks, len(ranks))
	}
	if haveFailedAlike(ranks) {
		v.Cause, v.Blamed = Alike, slices.Sorted(slices.Values(order))
	}
	return v
}

// haveFailedAlike reports whether all of several ranks have failed by themselves, with one text.
func haveFailedAlike(ranks []Rank) bool {
	return len(ranks) > 1 && !slices.ContainsFunc(ranks, func(r Rank) bool {
		return r.Report == nil || r.Report.Kind != 0 || r.Report.Text == "" || r.Report.Text != ranks[0].Report.Text
	})
}

// NamedBy returns in which way other ranks name each rank as the cause of their failure, PeerLost
// if in several.
func NamedBy(ranks []Rank) []Kind {
	named := make([]Kind, len(ranks))
	for i := range ranks {
		r := ranks[i].Report
		if r == nil || !r.Kind.IsConsequence() {
			continue
		}

		for _, other := range within(r.Ranks, len(ranks)) {
			if other != i && named[other] != PeerLost {
				named[other] = r.Kind
			}
		}
	}
	return named
}

// weigh returns the weight of rank number i, which others name in that way.
func (r *Rank) weigh(i int, named Kind) int {
	switch p := r.Report; {
	case p == nil && r.HasFailed:
		return byItself
	case p == nil:
		return hasNotFailed
	// What it reports.
	case p.Kind.isWait():
		return waited
	case p.isByOthers(i):
		return byOthers
	case p.MayRecover && !r.HasFailed:
		return hasNotFailed
	case p.Kind == Canceled && named == 0:
		return canceled
	}
	return byItself
}

// isByOthers reports whether only other ranks made rank number i fail.
func (p *Report) isByOthers(i int) bool {
	return p.Kind != 0 && p.Kind != Canceled && !slices.Contains(p.Ranks, i)
}

// latestTimes returns by when each rank had failed. A death is seen late: a rank that others have
// lost died before all that they have not, where neither reported.
func latestTimes(ranks []Rank, named []Kind) []time.Time {
	times := make([]time.Time, len(ranks))
	var unnamed time.Time // the first death of a rank that others have not lost
	for i, r := range ranks {
		times[i] = r.when()
		isDeath := r.HasFailed && r.Report == nil && named[i] != PeerLost
		if isDeath && (unnamed.IsZero() || times[i].Before(unnamed)) {
			unnamed = times[i]
		}
	}

	for i, r := range ranks {
		if r.Report == nil && named[i] == PeerLost && !unnamed.IsZero() && !times[i].Before(unnamed) {
			times[i] = unnamed.Add(-1)
		}
	}
	return times
}

// when is the time of the rank's failure, as exactly as known.
func (r *Rank) when() time.Time {
	if r.Report != nil {
		return r.Report.Time
	}
	return r.Ended
}

// followReports finds the cause where no rank failed by itself. The first report has seen most.
func (v *Verdict) followReports(ranks []Rank) {
	var reporters, circle []int
	for i := range ranks {
		if r := ranks[i].Report; r != nil && r.Kind != 0 && r.Kind != Canceled {
			reporters = append(reporters, i)
		}
	}
	slices.SortStableFunc(reporters, func(a, b int) int { return ranks[a].Report.Time.Compare(ranks[b].Report.Time) })

	for _, i := range reporters {
		r := ranks[i].Report
		if r.Kind.isWait() && len(r.Ranks) == 1 {
			if waits, _ := FollowWaits(ranks, r.Ranks[0]); waits != nil {
				v.Cause, v.Blamed, v.Reporter = Deadlock, waits, i
				return
			}
		}

		peers := within(r.Ranks, len(ranks))
		roots := slices.DeleteFunc(slices.Clone(peers), func(peer int) bool {
			return ranks[peer].Report != nil && ranks[peer].Report.isByOthers(peer)
		})
		if len(roots) > 0 {
			v.Cause, v.Blamed, v.Reporter = r.Kind.cause(), roots, i
			return
		}
		circle = append(circle, peers...)
	}

	if len(circle) > 0 {
		slices.Sort(circle)
		v.Cause, v.Blamed, v.Reporter = Circle, slices.Compact(circle), reporters[0]
		v.findMinority(ranks, reporters)
	}
}

// findMinority blames the ranks of a circle that made another call than most: who waits for a rank
// differs from it, and the few differ from more ranks than the many do. Ranks that join make no
// calls: those that wait for each other came at different times.
func (v *Verdict) findMinority(ranks []Rank, reporters []int) {
	differs := make([]int, len(ranks))
	for _, i := range reporters {
		if r := ranks[i].Report; r.Kind == Timeout && r.Awaited == nil && !r.IsJoining { // a message is no call of all
			for _, peer := range within(r.Ranks, len(ranks)) {
				differs[i]++
				differs[peer]++
			}
		}
	}

	var few, many []int
	most := slices.Max(differs)
	for i, n := range differs {
		if n == most {
			few = append(few, i)
		} else if n > 0 {
			many = append(many, i)
		}
	}
	if len(few) < len(many) {
		v.Cause, v.Blamed = Difference, few
	}
}

// cause returns how the ranks of a report of the kind made the job fail.
func (k Kind) cause() Cause {
	switch {
	case k.isWait():
		return Silent
	case k.IsDifference():
		return Difference
	case k == Shared:
		return Alike
	}
	return Left
}

// within returns those of ranks that a job of size ranks has, in ascending order, each once.
func within(ranks []int, size int) []int {
	known := slices.DeleteFunc(slices.Clone(ranks), func(r int) bool { return r < 0 || r >= size })
	slices.Sort(known)
	return slices.Compact(known)
}

// FollowWaits follows the waits from a rank, by the ranks' own reports: the error of a failed group
// is the same on all ranks and names one of them.
//
// It returns the circle in which they end, from its lowest rank, or the rank at which the reports
// end, or -1.
func FollowWaits(ranks []Rank, from int) (circle []int, end int) {
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
		if r == nil || !r.Kind.isWait() && r.Kind != PeerLost || r.Awaited == nil {
			return nil, at
		}
		circle, at = append(circle, at), *r.Awaited
	}
}
