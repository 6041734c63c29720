//go:build unix

package launcher

import (
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/atomicfile"
	"github.com/goccl/goccl/internal/flight"
)

// flightWatch holds the memory of the ranks' flight recorders, so that it outlives the ranks.
type flightWatch struct {
	memory Flight // nil: not found yet
	pause  time.Duration
	next   <-chan time.Time // the next look for the memory
	err    error            // of writing
}

// Pauses between two looks for the memory, of which the ranks send no notification.
const (
	firstFlightPause   = 10 * time.Millisecond
	longestFlightPause = time.Second
)

// lookForFlight opens the ranks' memory, if the job's records are wanted, or plans to look again.
func (l *launcher) lookForFlight() {
	w := &l.flight
	if w.next = nil; l.Flight == "" || l.ending.begun {
		return
	}
	if l.openFlight(); w.memory == nil {
		w.pause = min(max(2*w.pause, firstFlightPause), longestFlightPause)
		w.next = time.After(w.pause)
	}
}

// openFlight opens the memory of the group that the ranks have initialized last.
func (l *launcher) openFlight() {
	if l.Flight == "" {
		return
	}
	if last, err := l.Memory.openFlight(l.name); err == nil { // else no rank has joined, or all have ended
		l.flight.close()
		l.flight.memory = last
	}
}

// writeFlight writes the flight recorders of all ranks if the job has failed.
func (l *launcher) writeFlight() {
	if l.Flight != "" {
		atomicfile.RemoveAbandoned(l.Flight) // of ranks that were killed
	}
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

func (w *flightWatch) close() {
	if w.memory != nil {
		_ = w.memory.Close() // of what was only read
	}
	w.memory = nil
}
