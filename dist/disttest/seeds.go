package disttest

import (
	"context"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/underseeds"
)

// Seeds runs worker on a number of ranks by dist.Spawn, under each seed.
func Seeds(t *testing.T, ranks int, worker func(ctx context.Context, rank int) error) {
	t.Helper()
	if err := find(t, ranks, worker); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, ranks int, worker func(ctx context.Context, rank int) error) error {
	t.Helper()
	return underseeds.Find(t, false, func(uint64) error {
		return dist.Spawn(func(ctx context.Context, rank int) error {
			underseeds.Label(rank)
			return worker(ctx, rank)
		}, dist.WithRanks(ranks))
	})
}
