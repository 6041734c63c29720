package launch

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// An EndedError is a job that has ended with a failure, or because of a signal.
type EndedError struct {
	Ranks []Rank
	// First is the rank that failed first, or -1.
	First int
	// Signal is what the launcher was sent if that came before any failure, or 0.
	Signal syscall.Signal
	// After is when First has failed, or when Signal came, from the start of the job.
	After time.Duration
	// Output are the last lines of First, on the stream of that name.
	Output     []string
	OutputName string
}

// A Rank says how a rank's process has ended.
type Rank struct {
	PID    int
	Exit   int            // its status, if Signal is 0
	Signal syscall.Signal // that it died by
	Asked  syscall.Signal // that Run had sent before: SIGTERM, SIGKILL or what it handed on
}

func (r Rank) failed() bool { return r.Exit != 0 || r.Signal != 0 }

// status is what a shell would say.
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

// fate is what happened to a rank that was not the first to fail.
func (r Rank) fate() string {
	switch {
	case r.Asked == 0:
		return "ended before, with " + r.how()
	case r.Asked == syscall.SIGKILL && r.Signal == syscall.SIGKILL:
		return "killed, because it had not ended"
	case r.Asked == r.Signal:
		return "ended by " + signalName(r.Asked)
	}
	return fmt.Sprintf("ended after %s, with %s", signalName(r.Asked), r.how())
}

// ExitCode returns the status for the program to exit with: that of the rank that
// failed first, or 128 and the number of the signal.
func (e *EndedError) ExitCode() int {
	if e.First >= 0 {
		return e.Ranks[e.First].status()
	}
	return statusSignal + int(e.Signal)
}

// Error says which rank was the first to fail and how, what it has written last, and
// what happened to the others.
func (e *EndedError) Error() string {
	var b strings.Builder
	after := e.After.Round(time.Millisecond)
	if e.First >= 0 {
		first := e.Ranks[e.First]
		fmt.Fprintf(&b, "rank %d (pid %d) was the first to fail, after %v: %s", e.First, first.PID, after, first.how())
		if len(e.Output) > 0 {
			fmt.Fprintf(&b, "\n  the last that it wrote to %s:", e.OutputName)
			for _, line := range e.Output {
				b.WriteString("\n    " + line)
			}
		}
	} else {
		fmt.Fprintf(&b, "%s came after %v", signalName(e.Signal), after)
	}
	var fates []string
	ranks := make(map[string][]int)
	for i, r := range e.Ranks {
		if i == e.First {
			continue
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

// ranksText writes ascending ranks as "rank 3" or "ranks 0-2, 5".
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
