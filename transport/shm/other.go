//go:build !linux

package shm

import (
	"context"
	"runtime"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport"
)

// available returns an error: processes share memory on Linux alone.
func available() error {
	return &transport.NotAvailableError{
		Transport: Name,
		Reason:    "ranks as processes need Linux, and this is " + runtime.GOOS + ": run them as goroutines with dist.Spawn",
	}
}

// Join needs Linux. On other systems it fails; errors.As finds *transport.NotAvailableError.
func Join(context.Context, Job) (transport.Endpoint, error) { return nil, available() }

// Refuse does nothing, because only on Linux ranks join.
func Refuse(context.Context, *transport.Job, error) {}

// Flight is the flight recorders of a job's ranks as a process sees them that is not a rank.
type Flight struct{}

// Jobs returns none: on this system no job has shared memory.
func Jobs() ([]RunningJob, error) { return nil, nil }

// OpenFlight returns a *transport.NotAvailableError: on this system no job has shared memory.
func OpenFlight(string) (*Flight, error) {
	return nil, &transport.NotAvailableError{Transport: Name, Reason: "jobs have shared memory on Linux, and this is " + runtime.GOOS}
}

// OpenNodeFlight fails like OpenFlight.
func OpenNodeFlight(func(pid int) bool) (*Flight, error) { return OpenFlight("") }

// Job returns "".
func (*Flight) Job() string { return "" }

// Running returns no job.
func (*Flight) Running() RunningJob { return RunningJob{} }

// Size returns 0.
func (*Flight) Size() int { return 0 }

// Ranks returns none.
func (*Flight) Ranks() ([]flight.Rank, error) { return nil, nil }

// Close does nothing.
func (*Flight) Close() error { return nil }

// Leftovers returns none, because only Linux has segments.
func Leftovers() ([]Leftover, error) { return nil, nil }

// RemoveLeftovers does nothing.
func RemoveLeftovers(prefix string) error { return nil }

// Remove does nothing.
func (l Leftover) Remove() error { return nil }
