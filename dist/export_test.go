package dist

import (
	"context"
	"fmt"
	"testing"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// JoinBy makes launched processes meet by join, instead of shm.Join, until the test ends.
func JoinBy(t testing.TB, join func(context.Context, shm.Job) (transport.Endpoint, error)) {
	before := joinBy
	t.Cleanup(func() { joinBy = before })
	joinBy = func(ctx context.Context, p transport.Provider, j *transport.Job) ([]transport.Endpoint, error) {
		if p.Name != shm.Name {
			return before(ctx, p, j)
		}
		ep, err := join(ctx, shm.Job{Name: fmt.Sprintf("%s-%d", j.Key, j.Attempt), Rank: j.Rank, Size: j.Size, Secret: j.Secret})
		return []transport.Endpoint{ep}, err
	}
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
