package dist_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stuckLimit is the timeout: short, and enough for ranks to meet on a busy machine.
const stuckLimit = 250 * time.Millisecond

func stuckHere(release chan struct{}) { <-release }

// requireStuck fails unless err says first that rank 1 is stuck, and where.
func requireStuck(t *testing.T, err error) {
	t.Helper()
	var stuck *dist.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, 1, stuck.Rank)
	require.Equal(t, stuckLimit, stuck.After)
	require.Contains(t, string(stuck.Stack), "dist_test.stuckHere(")
	text := err.Error()
	require.True(t, strings.HasPrefix(text, "rank 1: the worker of rank 1 is stuck: 250ms after its peers had timed out waiting for it"), text)
	require.Equal(t, 1, strings.Count(text, "dist_test.stuckHere("))
	var late *dist.TimeoutError
	require.ErrorAs(t, err, &late)
	require.Equal(t, []int{1}, late.Missing)
}

// Spawn returns without a worker that is stuck in code of its own, also if its peers say
// nothing of the timeout, or never came to have a group.
func TestStuckWorker(t *testing.T) {
	short := dist.WithTimeout(stuckLimit)
	release, ended := make(chan struct{}), make(chan struct{}, 4)
	stuck := func(rank int) {
		if rank == 1 {
			stuckHere(release)
			ended <- struct{}{}
		}
	}
	requireStuck(t, spawn(t, joined(func(_ context.Context, rank int) error {
		stuck(rank)
		return dist.Barrier()
	}, short), dist.WithRanks(3)))

	requireStuck(t, spawn(t, func(ctx context.Context, rank int) error {
		stuck(rank)
		return dist.InitProcessGroup("ccl", short)
	}, dist.WithRanks(3)))

	err := spawn(t, joined(func(_ context.Context, rank int) error {
		stuck(rank)
		_, err := dist.Recv([]int{0}, 1, 0)
		return err
	}, short), dist.WithRanks(3))
	var e *dist.StuckError
	require.ErrorAs(t, err, &e)
	require.Equal(t, 1, e.Rank)

	err = spawn(t, joined(func(_ context.Context, rank int) error {
		stuck(rank)
		assert.Error(t, dist.Barrier())
		return dist.DestroyProcessGroup()
	}, short), dist.WithRanks(3))
	require.ErrorAs(t, err, &e)
	require.Equal(t, 1, e.Rank)

	close(release) // they find that their rank has ended
	for range 4 {
		<-ended
	}
}

// A worker that comes back from what its peers took for the end is waited for.
func TestLateWorkerIsNotStuck(t *testing.T) {
	gone := make(chan struct{})
	err := spawn(t, joined(func(_ context.Context, rank int) error {
		if rank == 0 {
			defer close(gone)
			return dist.Barrier()
		}
		<-gone
		assert.Error(t, dist.Barrier()) // it hears of the timeout, and saves its work
		<-time.After(4 * stuckLimit)
		return nil
	}, dist.WithTimeout(stuckLimit)), dist.WithRanks(2))
	var stuck *dist.StuckError
	require.NotErrorAs(t, err, &stuck)
	var late *dist.TimeoutError
	require.ErrorAs(t, err, &late)
}
