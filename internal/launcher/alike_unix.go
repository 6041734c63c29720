//go:build unix

package launcher

import (
	"github.com/goccl/goccl/internal/launchenv"
)

// blameAlike looks for the cause in what several ranks have in common, where one was the first that
// failed by itself: they have failed alike, or they run another build of the program than those
// that could not join them.
func (l *launcher) blameAlike(e *EndedError) {
	first := e.Blamed[0]
	report := e.Ranks[first].Report
	if report != nil && report.Kind == launchenv.FailedInit && e.Builds != "" {
		e.Cause = CauseMismatch
		e.Blamed, _ = findOtherBuilds(e.Ranks)
		return
	}

	var alike []int
	complaint := l.ranks[first].complaint()
	for i := range l.ranks {
		if complaint != "" && l.ranks[i].complaint() == complaint {
			alike = append(alike, i)
		}
	}
	if len(alike) > 1 {
		e.Cause, e.Blamed = CauseAlike, alike
	}
}

// complaint returns what a rank that has failed by itself says of that, without numbers: its
// report, or how it ended and its last line. It is "" if the rank has not.
func (r *rank) complaint() string {
	switch {
	case r.consequence() || !r.Failed() || !r.isFinished || r.Signal != 0 && r.Asked != 0:
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
