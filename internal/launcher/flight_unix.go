//go:build unix

package launcher

import (
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport/shm"
)

// flightWatch holds the memory of the ranks' flight recorders, so that it outlives the ranks.
type flightWatch struct {
	memory *shm.Flight // nil: not found yet
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
	if w.next = nil; l.Flight == "" || l.ending {
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
	if last, err := shm.OpenFlight(l.name); err == nil { // otherwise no rank has joined, or none is left
		l.closeFlight()
		l.flight.memory = last
	}
}

// writeFlight writes the flight recorders of all ranks if the job has failed.
func (l *launcher) writeFlight() {
	w := &l.flight
	if w.memory == nil || l.seen < 0 && l.signal == 0 && l.canceled == nil {
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

func (l *launcher) closeFlight() {
	if l.flight.memory != nil {
		_ = l.flight.memory.Close() // of what was only read
	}
	l.flight.memory = nil
}
