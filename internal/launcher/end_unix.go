//go:build unix

package launcher

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"
)

// failure is why a job fails: a rank, a signal to the launcher, or the end of the context,
// whichever came first.
type failure struct {
	seen     int            // the first rank that was seen to fail, or -1
	cause    Cause          // once the job is ended
	blamed   []int          // likewise
	reporter int            // likewise
	signal   syscall.Signal // to the launcher, or 0
	// isInterrupted: a signal to the launcher has come, perhaps after the job had failed.
	isInterrupted bool
	canceled      error         // the cause with which the context ended, or nil
	after         time.Duration // since the start of the job
	stall         string        // of the ranks' output at that time, or ""
	before        shortages     // when the job started
}

// hasCome reports whether the job fails.
func (f *failure) hasCome() bool { return f.seen >= 0 || f.signal != 0 || f.canceled != nil }

// ending is how far the launcher has come in ending the ranks.
type ending struct {
	begun       bool             // the ranks were sent a signal
	at          time.Time        // likewise
	killed      bool             // and it was SIGKILL
	grace       time.Duration    // between the first signal and SIGKILL; -1 if a second interrupt ended it
	interrupted bool             // this launcher has got SIGINT
	aborted     bool             // by an interrupt after all were killed
	blamedLate  <-chan time.Time // the ranks to blame have not ended in blameGrace
	deadline    <-chan time.Time // of the grace period
}

// blameGrace is how long a rank to blame may take to end by itself after others have ended because
// of it: its end and its output are the best information.
const blameGrace = 500 * time.Millisecond

// alikeGrace is how long other ranks may take to fail alike, after one that failed by itself, and
// other processes of a rank to end, after its own has ended well.
const alikeGrace = 100 * time.Millisecond

// initGrace is blameGrace if others have not joined because of the rank: it stays for a second to
// tell them, and then says why.
const initGrace = 3 * blameGrace

// endIfBlamed ends the job once a rank has failed and all ranks to blame have ended, or after
// blameGrace. Later reports are consequences of that.
func (l *launcher) endIfBlamed(now bool) {
	f := &l.failure
	if f.seen < 0 || l.ending.begun || l.Nodes.Rank > 0 {
		return
	}
	for i := range l.ranks {
		l.readReport(i)
	}
	l.findVanished()
	ranks := l.exits()
	f.cause, f.blamed, f.reporter = blame(ranks, f.seen)

	isAlive := func(i int) bool { return !l.ranks[i].ended }
	if end := findLastWaiting(ranks, f.blamed[0]); !now && f.cause == CauseSilent && end >= 0 && isAlive(end) {
		return // its report may close a circle
	}
	if !now && (f.cause == CauseUnknown || slices.ContainsFunc(f.blamed, isAlive)) {
		return
	}

	isQuiet := func(r Rank) bool { return !r.ended && (r.Report == nil || f.cause == CauseFailed) } // its report may matter
	if !now && slices.Contains([]Cause{CauseFailed, CauseCircle}, f.cause) && slices.ContainsFunc(ranks, isQuiet) {
		if f.cause == CauseFailed {
			l.ending.blamedLate = time.After(time.Until(l.ranks[f.blamed[0]].died.Add(alikeGrace)))
		}
		return
	}
	l.signalAll(syscall.SIGTERM)
}

// signalAll sends a signal to all remaining groups. The first time it starts the grace period.
func (l *launcher) signalAll(s syscall.Signal) {
	e := &l.ending
	if !e.begun {
		e.at, e.deadline, e.grace = time.Now(), time.After(l.Grace), l.Grace
	}

	e.begun, e.killed = true, e.killed || s == syscall.SIGKILL
	for i := range l.ranks {
		r := &l.ranks[i]
		if r.PID == 0 || r.isGone.Load() || !l.isHere(i) {
			continue
		}

		if r.running && r.Asked != syscall.SIGKILL { // an earlier signal of node 0 may come later
			r.Asked = s
		}
		if s != syscall.SIGTERM || r.wasAsked || !l.isAwaited(i) || !r.askForStacks() {
			signalGroup(r.PID, s)
		}
		signalGroup(r.PID, syscall.SIGCONT) // if it is stopped it cannot end
	}
	l.signalNodes(s)
}

// isAwaited reports whether the job has failed because others waited for a rank that still runs.
func (l *launcher) isAwaited(i int) bool {
	f, r := &l.failure, &l.ranks[i]
	if l.Nodes.Rank > 0 {
		return r.running && slices.Contains(l.nodes.stacks, i)
	}
	isRunning := r.running || !l.isHere(i) && !r.ended
	return f.seen >= 0 && isRunning && slices.Contains(f.blamed, i) &&
		slices.Contains([]Cause{CauseSilent, CauseLeft, CauseCircle, CauseDeadlock}, f.cause)
}

// askForStacks ends the rank by a signal that shows its stacks, and reports whether it understands
// that one. What it writes then is kept and not shown.
//
// A stopped rank is not asked: where it was says nothing, and a Go program may hang in its traces.
func (r *rank) askForStacks() bool {
	if r.wasStopped = isStopped(r.PID); r.wasStopped {
		return false
	}
	r.streams[1].asked.Store(true)
	if r.wasAsked = askStacks(r.PID); r.wasAsked {
		r.Asked = syscall.SIGQUIT
	}
	return r.wasAsked
}

// exits returns how the ranks have ended.
func (l *launcher) exits() []Rank {
	all := make([]Rank, len(l.ranks))
	for i := range all {
		all[i] = l.ranks[i].Rank
	}
	return all
}

// jobError returns Run's error for a job that started: why it failed, and what was lost of it.
func (l *launcher) jobError() error {
	lost := errors.Join(l.outputError(), l.flight.err)
	f := &l.failure
	if !f.hasCome() {
		return lost
	}

	e := &EndedError{Ranks: l.exits(), First: -1, Seen: f.seen, Signal: f.signal, Canceled: f.canceled, After: f.after, Grace: l.ending.grace, Restart: l.restart, isInterrupted: f.isInterrupted}
	e.Builds = describeBuilds(e.Ranks)
	if f.seen >= 0 {
		e.Cause, e.Blamed, e.Reporter = f.cause, f.blamed, f.reporter
		if f.cause == CauseFailed || e.Ranks[f.blamed[0]].Lost != "" {
			l.blameAlike(e)
		}
		e.First = e.Blamed[0]
		e.Shortage = cmp.Or(l.ranks[e.First].shortage, f.before.describe("", e.Ranks[e.First].isKilled()))
		if slices.Contains([]Cause{CauseSilent, CauseCircle, CauseDeadlock}, f.cause) {
			e.Stall = cmp.Or(f.stall, l.describeInput(f.blamed))
		}

		for _, i := range e.Blamed {
			if l.ranks[i].isFinished {
				l.ranks[i].addOutput(e, i)
			}
		}

		how := e.Ranks[e.First].How() + strings.Join(e.Crash, "")
		switch {
		case e.Shortage != "":
		case e.Cause == CauseSilent && l.isHere(e.First):
			e.Shortage = f.before.describeQuota("")
		case strings.Contains(e.CauseOf(e.First), "too many open files"):
			e.Shortage = "; raise ulimit -n"
		// Crashes of a runtime.
		case strings.Contains(how, "pthread_create failed"):
			e.Shortage = raiseProcesses
		case strings.Contains(how, "SIGXCPU"):
			e.Shortage = "; raise ulimit -t"
		}
	}

	if lost != nil {
		return errors.Join(e, lost)
	}
	return e
}

// addOutput adds to the error what a finished rank to blame has shown: where it was; and of the
// first such rank the crash, or the last output, of standard error or else of standard output.
func (r *rank) addOutput(e *EndedError, i int) {
	if r.wasAsked || r.wasStopped {
		_, all := r.streams[1].crash.message()
		if location, ok := locate(i, all); ok || r.wasStopped {
			location.Stopped = r.wasStopped
			e.Locations = append(e.Locations, location)
		}
	}
	if i != e.First {
		return
	}

	for _, k := range []int{1, 0} {
		s := &r.streams[k]
		e.Output, e.OutputName = s.last.text(), streamNames[k]
		if lines, all := s.crash.message(); len(all) > 0 && r.crashed(e.Output) {
			if strings.HasPrefix(lines[0], "SIG") {
				location, _ := locate(i, all) // a signal may come anywhere
				all = append(location.Goroutines, all...)
			}
			e.Output, e.Crash, e.Stack = nil, lines, &all[0]
		}
		if len(e.Output) > 0 || len(e.Crash) > 0 {
			return
		}
	}
}
