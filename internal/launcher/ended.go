package launcher

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	faults "github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/text"
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
	// Canceled is why the context ended if that came before any failure, or nil.
	Canceled error
	// After is when Seen failed, or Signal or the end of the context came, since the start of the job.
	After time.Duration
	// Output are the last lines of First, from the stream of that name, unless it crashed.
	Output     []string
	OutputName string
	// Crash is the message of the Go runtime when it ended First, and Stack the goroutine that made it
	// do so; nil otherwise.
	Crash []string
	Stack *launchenv.Goroutine
	// Locations are where the ranks in Blamed were that others waited for, as far as they showed it.
	Locations []Location
	// Stall says that output was not read when Seen failed, or that there was no input, or is "".
	Stall string
	// Grace is the time between SIGTERM and SIGKILL; -1 if a second interrupt ended it.
	Grace time.Duration
	// Shortage says of what control groups had too little, or is "".
	Shortage string
	// Builds says which ranks run another build of the program, or "".
	Builds string
	// Restart is how often the job had started before.
	Restart int

	isInterrupted bool // a signal to the launcher has come, perhaps later
}

// Rank is how a rank's process ended.
type Rank struct {
	PID    int
	Exit   int               // its status, if Signal is 0
	Signal syscall.Signal    // that killed it
	Asked  syscall.Signal    // that Run had sent before: SIGTERM, SIGQUIT, SIGKILL or the forwarded one
	Report *launchenv.Report // its report, or nil
	Wall   time.Duration     // from its start to its end

	Node      int             // of several
	Host      string          // its name; "" if the job has one node
	Lost      string          // how its node was lost before the rank ended, or ""
	Transport string          // by which it has joined the others; "" if it has not, or does not use goccl
	Value     json.RawMessage `json:",omitempty"` // its result, or nil

	build         string // of the program; "" if it has not told it
	ended         bool   // the process has ended
	hidden        string // why it has failed although it ended with status 0, as the launcher saw it
	hasRest       bool   // it ended with status 0, and the launcher has ended the rest of its group
	started, died time.Time
}

// Failed reports whether the rank ended by a signal or with another status than 0, or failed behind
// another process that ended with 0.
func (r Rank) Failed() bool {
	return r.Exit != 0 || r.Signal != 0 || r.Lost != "" || r.hiddenFailure() != ""
}

// hiddenFailure says why a rank has failed that ended with status 0, which is that of another
// process than its program, such as a shell whose pipe ends in cat; "" if it has not.
//
// A failed call alone is none: the program may have gone on.
func (r Rank) hiddenFailure() string {
	switch {
	case !r.ended || r.Exit != 0 || r.Signal != 0:
		return ""
	case r.Report != nil && r.Report.PID != r.PID && r.Report.Kind != launchenv.FailedCall:
		return "its program has failed (in a shell, see set -e and set -o pipefail)"
	}
	return r.hidden
}

// crashed reports whether the rank, whose last output is given, ended like a Go program that
// crashed, or like `go run` of one.
func (r Rank) crashed(last []string) bool {
	ran := len(last) > 0 && last[len(last)-1] == fmt.Sprintf("exit status %d", statusCrash)
	return r.Asked == 0 && (r.Signal != 0 || r.Exit == statusCrash || r.hidden != "" || r.Failed() && ran)
}

// status is the rank's status as in a shell.
func (r Rank) status() int {
	if r.Signal != 0 {
		return statusSignal + int(r.Signal)
	}
	if r.Lost != "" || r.hiddenFailure() != "" {
		return cmp.Or(r.Exit, statusFailed)
	}
	return r.Exit
}

// How describes how the rank ended.
func (r Rank) How() string {
	if r.Lost != "" {
		return "the loss of its node: " + r.Lost
	}
	if r.Signal != 0 {
		return fmt.Sprintf("%s (%v)", SignalName(r.Signal), r.Signal)
	}
	if r.Exit == StatusUnknown {
		return "an unknown status, because another part of the launching program has waited for it"
	}

	if hidden := r.hiddenFailure(); hidden != "" && !r.consequence() {
		return "exit status 0, but " + hidden
	}
	if r.hasRest {
		return "exit status 0; other processes of its group still ran, and were ended (in a shell, see exec and wait)"
	}
	how := fmt.Sprintf("exit status %d", r.Exit)
	if name := SignalName(syscall.Signal(r.Exit - statusSignal)); r.Exit > statusSignal && strings.HasPrefix(name, "SIG") {
		how += " (128 + " + name + ")" // as of a shell whose program the signal has ended
	}
	return how
}

// fate describes how a rank that was not the first to fail ended, or ranks that ended alike.
func (r Rank) fate(grace time.Duration, isBlamed bool) string {
	switch {
	case r.Asked == 0 && !r.Failed():
		return "ended before, with " + r.How()
	case r.Asked == 0 && isBlamed:
		return "ended with " + r.How()
	case r.Asked == 0 && r.consequence():
		return "failed because of that, with " + r.How()
	case r.Asked == 0:
		return "failed as well, with " + r.How()
	// It ended when it was asked to.
	case r.Asked == syscall.SIGKILL && r.Signal == syscall.SIGKILL && grace < 0:
		return "killed by the second interrupt"
	case r.Asked == syscall.SIGKILL && r.Signal == syscall.SIGKILL:
		return fmt.Sprintf("killed at the end of the grace period of %v", grace)
	case r.Asked == r.Signal || r.Asked == syscall.SIGQUIT && r.Exit == statusCrash: // as Go programs do
		return "ended by " + SignalName(r.Asked)
	}
	return fmt.Sprintf("ended after %s, with %s", SignalName(r.Asked), r.How())
}

// ExitCode returns the exit status for the program: the status of the rank that
// failed first, or of the first one that failed because of it if it has not ended by
// itself, or 128 plus the number of the signal.
func (e *EndedError) ExitCode() int {
	if e.Canceled != nil {
		return statusFailed
	}
	if e.First < 0 {
		return statusSignal + int(e.Signal)
	}
	if r := e.Ranks[e.First]; r.Failed() && r.Asked == 0 {
		return r.status()
	}
	return e.Ranks[e.Seen].status()
}

// Error names the rank to blame, how it ended or what others reported of it, its last
// output, where it was, and how the others ended.
func (e *EndedError) Error() string {
	var b strings.Builder
	if e.Stall != "" { // Blamed may have waited to write, or to read
		b.WriteString(e.Stall + ", and ")
	}
	b.WriteString(e.headline())
	if e.Builds != "" {
		b.WriteString("\n  " + e.Builds)
	}
	if e.First >= 0 {
		e.writeCause(&b)
		writeLocations(&b, e.Locations)
	}

	var fates []string
	ranks := make(map[string][]int)
	for i, r := range e.Ranks {
		if i == e.First && (e.Cause == CauseFailed || e.Cause == CauseUnknown) {
			continue // part of the headline
		}
		if r.Lost != "" && e.First >= 0 && r.Node == e.Ranks[e.First].Node {
			continue // likewise
		}
		fate := r.fate(e.Grace, slices.Contains(e.Blamed, i))
		if ranks[fate] == nil {
			fates = append(fates, fate)
		}
		ranks[fate] = append(ranks[fate], i)
	}

	for _, fate := range fates {
		fmt.Fprintf(&b, "\n  %s: %s", text.Ranks(ranks[fate]), fate)
	}
	return b.String()
}

// headline names the rank to blame, and how it failed.
func (e *EndedError) headline() string {
	after := e.After.Round(time.Millisecond).String()
	if e.Restart > 0 {
		after += fmt.Sprintf(" of restart %d", e.Restart)
	}
	if e.Canceled != nil {
		return fmt.Sprintf("the job was ended after %v: %v", after, e.Canceled)
	}
	if e.First < 0 {
		return fmt.Sprintf("%s came after %v", SignalName(e.Signal), after)
	}

	first := e.Ranks[e.First]
	who, was := text.Ranks(e.Blamed), "were"
	if first.Lost != "" {
		return fmt.Sprintf("node %d (host %s, %s) was lost, after %v: %s", first.Node, first.Host, who, after, first.Lost)
	}
	if len(e.Blamed) == 1 {
		who, was = fmt.Sprintf("%s (%spid %d)", who, first.describeNode(), first.PID), "was"
	}

	switch e.Cause {
	case CauseLeft:
		return fmt.Sprintf("%s left while others needed it: the job failed after %v", who, after)
	case CauseMismatch:
		return fmt.Sprintf("%s: the job failed after %v", e.difference(who), after)
	// An error of all.
	case CauseAlike:
		switch len(e.Blamed) {
		case 1:
			return fmt.Sprintf("%s made the others fail: the job failed after %v", who, after)
		case len(e.Ranks):
			who = "all ranks"
		}
		return fmt.Sprintf("%s failed alike: the job failed after %v%s", who, after, e.Shortage)
	// Ranks that waited.
	case CauseSilent:
		return fmt.Sprintf("%s %s waited for in vain: the job failed after %v%s", who, was, after, e.Shortage)
	case CauseCircle:
		return fmt.Sprintf("%s waited for each other: the job failed after %v", who, after)
	case CauseDeadlock:
		return fmt.Sprintf("ranks %s waited for each other, a deadlock: the job failed after %v", circleText(e.Blamed), after)
	}

	how := first.How()
	if first.Asked != 0 || !first.Failed() {
		how = first.fate(e.Grace, false)
	}

	if e.Cause == CauseUnknown {
		return fmt.Sprintf("%s failed because of another rank, after %v: %s", who, after, how)
	}
	return fmt.Sprintf("%s was the first to fail, after %v: %s%s", who, after, how, e.Shortage)
}

// describeNode says on which node a rank is, as a part of a message; "" if there is one node.
func (r Rank) describeNode() string {
	if r.Host == "" {
		return ""
	}
	return fmt.Sprintf("node %d, host %s, ", r.Node, r.Host)
}

// difference says in what the ranks to blame differ from others.
func (e *EndedError) difference(who string) string {
	verb, what := "made", "call"
	switch report := e.Ranks[e.Reporter].Report; {
	case report == nil:
	case report.Kind == launchenv.FailedInit:
		if verb, what = "has", "configuration"; len(e.Blamed) > 1 {
			verb = "have"
		}
	case report.Cause == faults.Unequal:
		verb, what = "brought", "value"
	}

	differs := func(r Rank) bool { return r.consequence() && r.Report.Cause.IsDifference() }
	if len(e.Blamed) == 1 || slices.ContainsFunc(e.Ranks, differs) || e.Ranks[e.Reporter].consequence() {
		return fmt.Sprintf("%s %s another %s than the others", who, verb, what)
	}
	return fmt.Sprintf("%s %s different %ss", who, verb, what)
}

// circleText returns a text such as "0 -> 1 -> 2 -> 0". Of a long circle it has the first ranks and
// the last.
func circleText(circle []int) string {
	const most = 12
	var b strings.Builder
	for i, rank := range circle {
		switch {
		case len(circle) <= most || i < most-1 || i == len(circle)-1:
			fmt.Fprintf(&b, "%d -> ", rank)
		case i == most-1:
			b.WriteString("... -> ")
		}
	}
	return b.String() + strconv.Itoa(circle[0])
}

// Limits of the lines of a message, and of the functions that are shown of a stack.
const (
	messageLines = 8
	framesShown  = 10
	lineShown    = 1000 // characters
)

// cut returns as much of a line as is shown.
func cut(line string) string {
	if text := []rune(line); len(text) > lineShown {
		return string(text[:lineShown]) + "..."
	}
	return line
}

// Unwrap returns why the context ended, if that ended the job.
func (e *EndedError) Unwrap() error { return e.Canceled }

// CauseOf returns why a rank failed, as far as it is known: its own report, the message of the
// crash, or its last output; "" if it did not fail, or nothing is known beside how it ended.
func (e *EndedError) CauseOf(rank int) string {
	switch r := e.Ranks[rank]; {
	case !r.Failed():
		return ""
	case r.Lost != "":
		return r.How()
	// What it says.
	case r.Report != nil:
		return r.Report.Message
	case rank != e.First:
		return ""
	case len(e.Crash) > 0:
		return strings.Join(e.Crash, "\n")
	}
	return strings.Join(e.Output, "\n")
}

// writeCause writes the cause, each part once: the report of First, or of the rank that names it;
// the crash of First; else its last output.
func (e *EndedError) writeCause(b *strings.Builder) {
	output := e.Output
	if r := e.Ranks[e.Reporter].Report; r != nil {
		lines := strings.Split(strings.TrimRight(r.Message, "\n"), "\n")
		isReport := func(line string) bool { return strings.Contains(letters(line), letters(lines[0])) } // perhaps quoted
		isFirst := e.Reporter == e.First || e.Cause == CauseAlike && slices.Contains(e.Blamed, e.Reporter)
		if isFirst && r.Frames != nil {
			writeMessage(b, lines, r.Frames)
			return
		}

		start := slices.IndexFunc(output, isReport)
		switch {
		case isFirst && slices.ContainsFunc(e.Crash, isReport):
		case isFirst && start >= 0:
			output = output[start:]
		case isFirst:
			writeMessage(b, lines, nil)
		default:
			if letters(lines[0]) != "" {
				output = slices.DeleteFunc(slices.Clone(output), isReport) // of a rank that the reporter has aborted
			}
			lines[0] = fmt.Sprintf("rank %d says: %s", e.Reporter, lines[0])
			writeMessage(b, lines, r.Frames)
		}
	}

	switch {
	case len(e.Crash) > 0:
		writeMessage(b, e.Crash, launchenv.OwnFrames(e.Stack.Frames))
		if e.Stack.Creator != nil && e.Stack.Creator.IsOwn() {
			fmt.Fprintf(b, "\n    in goroutine %d, started in %v", e.Stack.Number, e.Stack.Creator)
		}

	case len(output) > 0:
		who := "it"
		if len(e.Blamed) > 1 {
			who = fmt.Sprintf("rank %d", e.First)
		}
		fmt.Fprintf(b, "\n  the last that %s wrote to %s:", who, e.OutputName)
		for _, line := range output {
			b.WriteString("\n    " + cut(line))
		}
	}
}

// writeMessage writes the first lines of a message, and the innermost functions below it.
func writeMessage(b *strings.Builder, lines []string, frames []launchenv.Frame) {
	for _, line := range lines[:min(len(lines), messageLines)] {
		b.WriteString("\n  " + cut(line))
	}
	if len(lines) > messageLines {
		b.WriteString("\n  ...")
	}
	writeFrames(b, frames)
}

// writeFrames writes the innermost functions, one that calls itself once.
func writeFrames(b *strings.Builder, frames []launchenv.Frame) {
	frames = slices.Compact(slices.Clone(frames))
	for _, f := range frames[:min(len(frames), framesShown)] {
		b.WriteString("\n    in " + f.String())
	}
	if more := len(frames) - framesShown; more > 0 {
		fmt.Fprintf(b, "\n    and %d more", more)
	}
}
