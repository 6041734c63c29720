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
	pause time.Duration
	next  <-chan time.Time // the next look for the memory
	err   error            // of writing
}

// Pauses between two looks for the memory, of which the ranks send no notification.
const (
	firstFlightPause   = 10 * time.Millisecond
	longestFlightPause = time.Second
)

// wantsFlight reports whether the job's records are wanted.
func (l *launcher) wantsFlight() bool { return l.Flight != "" || l.Memory.Monitor != nil }

// lookForFlight opens the ranks' memory, if the job's records are wanted, or plans to look again:
// for a Monitor also for that of a later group.
func (l *launcher) lookForFlight() {
	w := &l.flight
	if w.next = nil; !l.wantsFlight() || l.ending.begun {
		return
	}
	if w.haveLeft() {
		l.openFlight()
	}

	if w.memory == nil {
		w.pause = min(max(2*w.pause, firstFlightPause), longestFlightPause)
		w.next = time.After(w.pause)
	} else if l.Memory.Monitor != nil {
		w.next = time.After(longestFlightPause)
	}
}

// openFlight opens the memory of the group that the ranks have initialized last.
func (l *launcher) openFlight() {
	if !l.wantsFlight() {
		return
	}
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
