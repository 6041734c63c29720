//go:build unix

package launcher

import (
	"slices"

	faults "github.com/goccl/goccl/internal/failure"
)

// blameAlike blames all ranks that failed by themselves as the first of them did, or that were lost
// with its node.
func (l *launcher) blameAlike(e *EndedError) {
	var alike []int
	first, complaint := &l.ranks[e.Blamed[0]], l.complaint(e.Blamed[0])
	for i := range l.ranks {
		r := &l.ranks[i]
		isSame := complaint != "" && l.complaint(i) == complaint && !r.hasLost(e.Blamed[0])
		if first.Lost != "" {
			isSame = r.Lost != "" && r.Node == first.Node
		}
		if isSame {
			alike = append(alike, i)
		}
	}

	if len(alike) > 1 {
		e.Cause, e.Blamed = CauseAlike, alike
	}
}

// hasLost reports whether a rank has failed because it lost another one, which need not have ended.
func (r *rank) hasLost(other int) bool {
	return r.Report != nil && r.Report.Cause == faults.PeerLost && slices.Contains(r.Report.Ranks, other)
}

// complaint returns what a rank that has failed says of that, without numbers: its report, even of
// what another one has failed for as well, or how it ended and its last line. It is "" if the rank
// has not, or ended when it was asked to.
func (l *launcher) complaint(i int) string {
	r := &l.ranks[i]
	switch {
	case !r.Failed() || !r.isFinished:
		return ""
	case r.Asked != 0 && (r.Signal != 0 || r.Report == nil || r.Report.Time.After(l.ending.at)):
		return ""
	case r.Report != nil:
		return "report " + letters(r.Report.Message)
	}

	for _, k := range []int{1, 0} {
		if lines := r.streams[k].last.text(); len(lines) > 0 {
			return r.How() + letters(lines[len(lines)-1])
		}
	}
	return r.How()
}
