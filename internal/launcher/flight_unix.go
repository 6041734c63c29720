//go:build unix

package launcher

import (
	"fmt"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/atomicfile"
	"github.com/goccl/goccl/internal/flight"
)

// flightWatch holds the memory of the ranks' flight recorders, so that it outlives the ranks.
type flightWatch struct {
	*Monitor
	slow  int // the rank that the others wait for, or -1
	pause time.Duration
	next  <-chan time.Time // the next look for the memory
	err   error            // of writing
}

// Pauses between two looks for the memory, of which the ranks send no notification.
const (
	firstFlightPause    = 10 * time.Millisecond
	longestFlightPause  = time.Second
	firstUnaskedPause   = 10 * time.Second // if nobody wants the records: only to warn of a slow rank
	longestUnaskedPause = time.Minute
)

// wantsFlight reports whether the job's records are wanted.
func (l *launcher) wantsFlight() bool { return l.Flight != "" || l.Memory.Monitor != nil }

// lookForFlight opens the ranks' memory, or that of a later group, reads it, and plans to look
// again.
func (l *launcher) lookForFlight() {
	w := &l.flight
	if w.next = nil; l.ending.begun {
		return
	}
	waiting, haveLeft := w.sample(time.Now())
	switch isFirst := w.pause == 0; {
	case !haveLeft:
		l.warnOfSlow(waiting)
	case l.wantsFlight():
		l.openFlight()
	case !isFirst: // short jobs are left alone
		w.open(nil)
		l.openFlight()
	}

	switch {
	case w.memory != nil:
		w.pause = longestFlightPause
	case l.wantsFlight():
		w.pause = min(max(2*w.pause, firstFlightPause), longestFlightPause)
	default:
		w.pause = min(max(2*w.pause, firstUnaskedPause), longestUnaskedPause)
	}
	w.next = time.After(w.pause)
}

// warnOfSlow warns if it is another rank than before that the others wait for.
func (l *launcher) warnOfSlow(waiting flight.Waiting) {
	slow := waiting.Slow(l.flight.slow)
	if slow == l.flight.slow {
		return
	}
	l.flight.slow = slow
	if slow < 0 {
		l.warn(-1, "no rank is slow any more")
		return
	}
	of := waiting.Of[slow]
	l.warn(slow, fmt.Sprintf("rank %d is slow: the others wait %.0f%% of their time for it, which is %.0f%% of all waiting (goccl inspect --health)", slow, 100*of.Ratio, 100*of.Share))
}

// openFlight opens the memory of the group that the ranks have initialized last.
func (l *launcher) openFlight() {
	var memory Flight
	var err error
	if l.Nodes.Count < 2 {
		memory, err = l.Memory.openFlight(l.name)
	} else {
		memory, err = l.Memory.openNodeFlight(l.isOfRankHere)
	}
	if err == nil { // else no rank has joined, or all have ended
		l.flight.open(memory)
	}
}

// isOfRankHere reports whether a process belongs to a rank of this node: it may be the child of a
// shell.
func (l *launcher) isOfRankHere(pid int) bool {
	group, err := syscall.Getpgid(pid)
	for i := range l.here() {
		if err == nil && pid > 0 && l.here()[i].PID == group {
			return true
		}
	}
	return false
}

// writeFlight writes the flight recorders of all ranks if the job has failed.
func (l *launcher) writeFlight() {
	if l.Flight == "" {
		return
	}
	atomicfile.RemoveAbandoned(l.Flight) // of ranks that were killed
	w := &l.flight
	if w.memory == nil || !l.failure.hasCome() {
		return
	}
	ranks, err := w.memory.Ranks()
	if err == nil {
		err = (&flight.Document{
			Version: flight.Version, Job: w.memory.Job(), Size: w.memory.Size(),
			Writer: "goccl run", Written: time.Now().UTC(), Ranks: ranks,
		}).Write(l.Flight)
	}
	if err != nil {
		w.err = fmt.Errorf("the flight recorders of the ranks: %s: %w", l.Flight, err)
	}
}
