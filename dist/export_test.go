package dist

import (
	"context"
	"testing"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// JoinBy makes launched processes meet by join until the test ends.
func JoinBy(t testing.TB, join func(context.Context, shm.Job) (transport.Endpoint, error)) {
	before := joinProcesses
	t.Cleanup(func() { joinProcesses = before })
	joinProcesses = join
}

// Bound returns how many goroutines have a rank of their own.
func Bound() int { return bound.Len() }

// Labels returns how many profiler labels of workers are remembered.
func Labels() int {
	spawned.Lock()
	defer spawned.Unlock()
	return len(spawned.labels)
}

// OpenRendezvous returns the number of open rendezvous of the process without Spawn.
func OpenRendezvous() int {
	solo.mu.Lock()
	defer solo.mu.Unlock()
	return len(solo.open)
}
