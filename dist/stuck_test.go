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

// stuckLimit is the timeout: short, but long enough for ranks to meet on a busy machine.
const stuckLimit = 250 * time.Millisecond

func stuckHere(release chan struct{}) { <-release }

// requireStuck checks that err starts with stuck rank 1 and has its stack.
func requireStuck(t *testing.T, err error) {
	t.Helper()
	var stuck *dist.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, 1, stuck.Rank)
	require.Equal(t, stuckLimit, stuck.After)
	require.Contains(t, string(stuck.Stack), "dist_test.stuckHere(")
	text := err.Error()
	require.True(t, strings.HasPrefix(text, "rank 1: the worker is stuck: 250ms after its peers had timed out waiting for it"), text)
	require.Equal(t, 1, strings.Count(text, "dist_test.stuckHere("))
	var late *dist.TimeoutError
	require.ErrorAs(t, err, &late)
	require.Equal(t, []int{1}, late.Missing)
}

// Spawn returns without a worker that is stuck in its own code, also if its peers do not
// return the timeout, or never had a group.
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

	close(release) // their next call finds that the rank has ended
	for range 4 {
		<-ended
	}
}

// A worker that makes a call after its peers' timeout is waited for.
func TestLateWorkerIsNotStuck(t *testing.T) {
	gone := make(chan struct{})
	err := spawn(t, joined(func(_ context.Context, rank int) error {
		if rank == 0 {
			defer close(gone)
			return dist.Barrier()
		}
		<-gone
		assert.Error(t, dist.Barrier()) // it gets the timeout, and saves its work
		<-time.After(4 * stuckLimit)
		return nil
	}, dist.WithTimeout(stuckLimit)), dist.WithRanks(2))
	var stuck *dist.StuckError
	require.NotErrorAs(t, err, &stuck)
	var late *dist.TimeoutError
	require.ErrorAs(t, err, &late)
}
