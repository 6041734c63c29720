package launcher

import (
	faults "github.com/goccl/goccl/internal/failure"
)

// Cause is how the ranks in EndedError.Blamed made the job fail.
type Cause = faults.Cause

// Causes, as package failure has them.
const (
	CauseFailed   = faults.ByItself
	CauseLeft     = faults.Left
	CauseSilent   = faults.Silent
	CauseCircle   = faults.Circle
	CauseDeadlock = faults.Deadlock
	CauseMismatch = faults.Difference
	CauseAlike    = faults.Alike
	CauseUnknown  = faults.Unknown
)

// consequence reports whether the rank reported that other ranks made it fail.
func (r *Rank) consequence() bool {
	return r.Report != nil && r.Report.IsConsequence() && r.Report.Cause != faults.Canceled
}

// blame finds the root cause of a job's failure. first is the rank that the launcher saw fail
// first; reporter is the rank whose report names the cause.
func blame(ranks []Rank, first int) (cause Cause, blamed []int, reporter int) {
	v := faults.Blame(failures(ranks))
	if v.Cause == CauseUnknown {
		return CauseUnknown, []int{first}, first
	}
	return v.Cause, v.Blamed, v.Reporter
}

// findLastWaiting returns the rank at which the waits of the ranks, from one of them, end, or -1.
func findLastWaiting(ranks []Rank, from int) int {
	_, end := faults.FollowWaits(failures(ranks), from)
	return end
}

// failures returns what is known of the ranks' failures.
func failures(ranks []Rank) []faults.Rank {
	all := make([]faults.Rank, len(ranks))
	for i := range ranks {
		r := &ranks[i]
		all[i] = faults.Rank{HasFailed: r.ended && r.Failed(), Ended: r.died}
		if r.Report != nil {
			all[i].Report = r.Report.Failure()
		}
	}
	return all
}
