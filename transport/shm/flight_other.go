//go:build !linux

package shm

import (
	"runtime"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport"
)

// Flight is the flight recorders of a job's ranks as a process sees them that is not a rank.
type Flight struct{}

// Jobs returns none: on this system no job has shared memory.
func Jobs() ([]RunningJob, error) { return nil, nil }

// OpenFlight returns a *transport.NotAvailableError: on this system no job has shared memory.
func OpenFlight(string) (*Flight, error) {
	return nil, &transport.NotAvailableError{Transport: Name, Reason: "jobs have shared memory on Linux, and this is " + runtime.GOOS}
}

// Job returns "".
func (*Flight) Job() string { return "" }

// Size returns 0.
func (*Flight) Size() int { return 0 }

// Ranks returns none.
func (*Flight) Ranks() ([]flight.Rank, error) { return nil, nil }

// Close does nothing.
func (*Flight) Close() error { return nil }
