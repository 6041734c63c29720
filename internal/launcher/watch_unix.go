//go:build unix

package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	faults "github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/launchenv"
)

// watch returns when all started ranks have finished.
func (l *launcher) watch(ctx context.Context) {
	l.lookForFlight()
	shared := l.cores.changed()
	canceled := ctx.Done()
	l.pulse.last = time.Now()
	beats := time.NewTicker(pulsePause)
	defer beats.Stop()

	for l.running > 0 && !l.ending.aborted {
		select {
		case c := <-l.children:
			l.recordExit(c)
			l.sendRanks(c.rank)

		case m := <-l.nodes.messages:
			l.handleNode(m)
		case <-l.nodes.ticks:
			l.sendAll()
		case i := <-l.finished:
			l.ranks[i].isFinished = true
			l.noteFinished(i)
			l.sendRanks(i)

		case s := <-l.Signals:
			if slices.Contains(userSignals, s) {
				l.passOn(s.(syscall.Signal))
			} else {
				l.endBySignal(s.(syscall.Signal))
			}
		case <-canceled:
			canceled = nil
			l.endByContext(ctx)

		case <-shared:
			l.cores.move(l.here())
		case <-beats.C:
			l.pulse.beat(time.Now())
			l.noteGroups("")
			l.warnOfMemory("")
			l.reapOrphans()
		case <-l.flight.next:
			l.lookForFlight()

		case <-l.ending.blamedLate:
			if !l.loseSilent() {
				l.endIfBlamed(true)
			}
		case <-l.ending.deadline:
			l.signalAll(syscall.SIGKILL)
			l.nodes.late = time.After(silence)
		case <-l.nodes.late:
			l.loseLate()
		}
	}
}

// recordExit records how a rank's process ended, and ends the job if it failed.
func (l *launcher) recordExit(c child) {
	i := c.rank
	r := &l.ranks[i]
	r.running, r.ended, r.died = false, true, time.Now()
	if r.Wall = r.died.Sub(r.started); c.err != nil {
		r.Exit = StatusUnknown
	} else if status := c.state.Sys().(syscall.WaitStatus); status.Signaled() {
		r.Signal = status.Signal()
	} else {
		r.Exit = status.ExitStatus()
	}

	l.readReport(i)
	if r.isKilled() {
		r.shortage = cmp.Or(r.groups.describe(""), c.describeTime()) // before the system removes the groups
	}
	if r.hasRest = c.rest && !l.ending.begun; r.hasRest && l.isAtWork(i) {
		r.hidden = "its program still ran, and was ended (in a shell, see exec and wait)"
	}

	if l.noteFailure(i); !l.ending.begun && !r.Failed() {
		signalGroup(r.PID, syscall.SIGTERM) // the rest of its group
		signalGroup(r.PID, syscall.SIGCONT)
	}
	l.endIfBlamed(false)
	go l.finish(i)
}

// noteFailure notes the first rank that fails, unless the job ends.
func (l *launcher) noteFailure(i int) {
	r := &l.ranks[i]
	if l.ending.begun || !r.Failed() || l.failure.seen >= 0 || l.Nodes.Rank > 0 {
		return
	}
	l.failure.seen, l.failure.after, l.failure.stall = i, time.Since(l.started), l.findStall(r.died)
	if l.wantsFlight() {
		l.openFlight() // of a group that was initialized since
	}
	l.ending.blamedLate = time.After(blameGrace)
	if r.Report != nil && r.Report.Kind == launchenv.FailedInit && r.Report.Cause == faults.Aborted {
		l.ending.blamedLate = time.After(initGrace)
	}
	l.nodes.send(nodeMessage{Watch: true})
}

// finish waits until a rank's group is empty and all its output was read.
//
// The number of a group is not reused while the group exists, nor soon afterwards.
func (l *launcher) finish(i int) {
	r := &l.ranks[i]
	if !r.awaitEmptyGroup(l.Grace) {
		signalGroup(r.PID, syscall.SIGKILL)
		r.awaitEmptyGroup(time.Second) // orphans may be children of a process 1 that is slow to wait for them
	}
	r.isGone.Store(true)
	l.keeper.forget(r.PID)
	for _, pipe := range r.pipes {
		if pipe != nil {
			_ = pipe.SetReadDeadline(time.Now()) // it may be closed: all was read
		}
	}
	r.reading.Wait()
	l.finished <- i
}

// awaitEmptyGroup reports whether a group becomes empty within that time.
//
// It polls every few milliseconds, since the system sends no notification. Dead processes count
// as gone: their parent may be slow to wait for them, or never do it.
func (r *rank) awaitEmptyGroup(limit time.Duration) bool {
	const between = 10 // polls between two looks at the processes, which cost more
	deadline := time.Now().Add(limit)
	for n, dead := 1, 0; ; n++ {
		reapGroup(r.PID)
		if !signalGroup(r.PID, 0) {
			return true
		}
		if n%between == 0 {
			if dead++; !isDead(r.PID) {
				dead = 0
			} else if dead == 2 { // the first look may have missed one that was just started
				return true
			}
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// passOn sends a signal to the processes of the ranks that handle it. Others, such as a shell,
// would die of it.
func (l *launcher) passOn(s syscall.Signal) {
	for i := range l.here() {
		if r := &l.here()[i]; r.PID != 0 && !r.isGone.Load() {
			signalHandlers(r.PID, s)
		}
	}
}

// endBySignal forwards a signal to this launcher, or asks node 0 to do so. A second interrupt
// kills.
func (l *launcher) endBySignal(s syscall.Signal) {
	l.failure.isInterrupted = true
	isSecond := l.ending.interrupted && s == syscall.SIGINT
	l.ending.interrupted = l.ending.interrupted || s == syscall.SIGINT
	switch {
	case l.ending.killed:
		l.ending.aborted = true // the output cannot be written
	case isSecond:
		l.ending.grace = -1
		l.signalAll(syscall.SIGKILL)
		if l.Nodes.Rank > 0 {
			l.nodes.send(nodeMessage{Signal: syscall.SIGKILL})
		}
	case l.Nodes.Rank > 0:
		l.nodes.send(nodeMessage{Signal: s})
	default:
		l.forward(s)
	}
}

// forward forwards a signal to all ranks. The first one is the reason why the job ends. Of several
// nodes, all may get it.
func (l *launcher) forward(s syscall.Signal) {
	l.failure.isInterrupted = true
	if l.Nodes.Count > 1 && l.ending.begun {
		return
	}
	if l.endIfBlamed(true); !l.ending.begun {
		l.failure.signal, l.failure.after = s, time.Since(l.started)
	}
	l.signalAll(s)
}

// endByContext ends the job because its context has ended.
func (l *launcher) endByContext(ctx context.Context) {
	if l.endIfBlamed(true); l.ending.begun {
		return
	}
	f := &l.failure
	f.canceled, f.after = endOf(ctx), time.Since(l.started)
	l.signalAll(syscall.SIGTERM)
}

// endOf returns why a context has ended.
func endOf(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}
