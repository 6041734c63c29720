package launcher

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
)

// EndedError is a job that ended by a failure or a signal.
type EndedError struct {
	Ranks []Rank
	// First is the rank that is to blame, the lowest of Blamed, or -1.
	First int
	// Cause is how the ranks in Blamed made the job fail.
	Cause  Cause
	Blamed []int
	// Reporter is the rank whose report names the cause, if any: First, or a
	// rank that failed because of it.
	Reporter int
	// Seen is the rank that the launcher saw fail first, possibly not First.
	Seen int
	// Signal is the launcher's signal if it came before any failure, or 0.
	Signal syscall.Signal
	// After is when Seen failed or Signal came, since the start of the job.
	After time.Duration
	// Output are lines of First, from the stream of that name: the start of Go's
	// crash message if Crashed, else the last lines.
	Output     []string
	OutputName string
	Crashed    bool
}

// Rank is how a rank's process ended.
type Rank struct {
	PID    int
	Exit   int               // its status, if Signal is 0
	Signal syscall.Signal    // that killed it
	Asked  syscall.Signal    // that Run had sent before: SIGTERM, SIGKILL or the forwarded one
	Report *launchenv.Report // its report, or nil

	ended bool // the process has ended
	died  time.Time
}

// when is the time of the rank's failure, as exactly as known.
func (r *Rank) when() time.Time {
	if r.Report != nil {
		return r.Report.Time
	}
	return r.died
}

func (r Rank) failed() bool { return r.Exit != 0 || r.Signal != 0 }

// crashed reports whether the rank ended like a crashed Go program.
func (r Rank) crashed() bool { return r.Asked == 0 && (r.Signal != 0 || r.Exit == statusCrash) }

// status is the rank's status as in a shell.
func (r Rank) status() int {
	if r.Signal != 0 {
		return statusSignal + int(r.Signal)
	}
	return r.Exit
}

func (r Rank) how() string {
	if r.Signal != 0 {
		return fmt.Sprintf("%s (%v)", signalName(r.Signal), r.Signal)
	}
	return fmt.Sprintf("exit status %d", r.Exit)
}

// fate describes how a rank that was not the first to fail ended.
func (r Rank) fate() string {
	switch {
	case r.Asked == 0 && !r.failed():
		return "ended before, with " + r.how()
	case r.Asked == 0 && r.consequence():
		return "failed because of that, with " + r.how()
	case r.Asked == 0:
		return "failed as well, with " + r.how()
	case r.Asked == syscall.SIGKILL && r.Signal == syscall.SIGKILL:
		return "killed, because it had not ended"
	case r.Asked == r.Signal:
		return "ended by " + signalName(r.Asked)
	}
	return fmt.Sprintf("ended after %s, with %s", signalName(r.Asked), r.how())
}

// ExitCode returns the exit status for the program: the status of the rank that
// failed first, or of the first one that failed because of it if it has not ended by
// itself, or 128 plus the number of the signal.
func (e *EndedError) ExitCode() int {
	if e.First < 0 {
		return statusSignal + int(e.Signal)
	}
	if r := e.Ranks[e.First]; r.failed() && r.Asked == 0 {
		return r.status()
	}
	return e.Ranks[e.Seen].status()
}

// Error names the rank to blame, how it ended or what others reported of it, its last
// output, and how the others ended.
func (e *EndedError) Error() string {
	var b strings.Builder
	b.WriteString(e.headline())
	if e.First >= 0 {
		r := e.Ranks[e.Reporter].Report
		if r != nil {
			e.writeReport(&b, r)
		}
		if len(e.Output) > 0 && (r == nil || r.Frames == nil) { // otherwise the report repeats it
			who, what := "it", "the last that %s wrote to %s:"
			if len(e.Blamed) > 1 {
				who = fmt.Sprintf("rank %d", e.First)
			}
			if e.Crashed {
				what = "%s wrote to %s when it crashed:"
			}
			fmt.Fprintf(&b, "\n  "+what, who, e.OutputName)
			for _, line := range e.Output {
				b.WriteString("\n    " + line)
			}
		}
	}
	var fates []string
	ranks := make(map[string][]int)
	for i, r := range e.Ranks {
		if i == e.First && (e.Cause == CauseFailed || e.Cause == CauseUnknown) {
			continue // part of the headline
		}
		fate := r.fate()
		if ranks[fate] == nil {
			fates = append(fates, fate)
		}
		ranks[fate] = append(ranks[fate], i)
	}
	for _, fate := range fates {
		fmt.Fprintf(&b, "\n  %s: %s", ranksText(ranks[fate]), fate)
	}
	return b.String()
}

// headline names the rank to blame, and how it failed.
func (e *EndedError) headline() string {
	after := e.After.Round(time.Millisecond)
	if e.First < 0 {
		return fmt.Sprintf("%s came after %v", signalName(e.Signal), after)
	}
	first := e.Ranks[e.First]
	who, was := ranksText(e.Blamed), "were"
	if len(e.Blamed) == 1 {
		who, was = fmt.Sprintf("%s (pid %d)", who, first.PID), "was"
	}
	switch e.Cause {
	case CauseLeft:
		return fmt.Sprintf("%s left while others needed it: the job failed after %v", who, after)
	case CauseSilent:
		return fmt.Sprintf("%s %s waited for in vain: the job failed after %v", who, was, after)
	case CauseCircle:
		return fmt.Sprintf("%s waited for each other: the job failed after %v", who, after)
	}
	how := first.how()
	if first.Asked != 0 || !first.failed() {
		how = first.fate()
	}
	if e.Cause == CauseUnknown {
		return fmt.Sprintf("%s failed because of another rank, after %v: %s", who, after, how)
	}
	return fmt.Sprintf("%s was the first to fail, after %v: %s", who, after, how)
}

// Limits of the lines of a message and of the functions that are shown of a report.
const (
	messageLines = 8
	framesShown  = 4
)

// writeReport writes a report, unless the rank's output contains it.
func (e *EndedError) writeReport(b *strings.Builder, r *launchenv.Report) {
	lines := strings.Split(strings.TrimRight(r.Message, "\n"), "\n")
	said := func(line string) bool { return strings.Contains(line, lines[0]) }
	if e.Reporter == e.First && slices.ContainsFunc(e.Output, said) {
		return
	}
	if len(lines) > messageLines {
		lines = append(lines[:messageLines:messageLines], "...")
	}
	if e.Reporter != e.First {
		lines[0] = fmt.Sprintf("rank %d says: %s", e.Reporter, lines[0])
	}
	for _, line := range lines {
		b.WriteString("\n  " + line)
	}
	for _, f := range r.Frames[:min(len(r.Frames), framesShown)] {
		b.WriteString("\n    in " + f.String())
	}
}

// ranksText formats ascending ranks as "rank 3" or "ranks 0-2, 5".
func ranksText(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var runs []string
	for i := 0; i < len(ranks); {
		first := i
		for i++; i < len(ranks) && ranks[i] == ranks[i-1]+1; i++ {
		}
		run := fmt.Sprint(ranks[first])
		if i-first > 1 {
			run += fmt.Sprintf("-%d", ranks[i-1])
		}
		runs = append(runs, run)
	}
	return "ranks " + strings.Join(runs, ", ")
}
