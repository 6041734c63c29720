package dist_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

type fullDisk struct{}

var errFull = errors.New("no room")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// Metrics can be read at any time: before there is a group, by goroutines without a rank, and after
// the job. Several jobs at a time have none in common.
func TestWriteMetrics(t *testing.T) {
	var none bytes.Buffer
	require.NoError(t, dist.WriteMetrics(&none))
	require.Empty(t, none.String())
	require.Empty(t, dist.Metrics())

	worker := func(inside func(rank int) error) func(context.Context, int) error {
		return func(_ context.Context, rank int) error {
			if err := dist.InitProcessGroup("ccl", dist.WithMetrics()); err != nil {
				return err
			}
			for range 2 { // between these, no rank leaves
				if err := dist.Barrier(); err != nil {
					return err
				}
				if err := inside(rank); err != nil {
					return err
				}
			}
			return dist.DestroyProcessGroup()
		}
	}
	asked, answered := make(chan func() error), make(chan error)
	defer close(asked)
	go func() { // it has no rank, nor was it started by one
		for f := range asked {
			answered <- f()
		}
	}()
	elsewhere := func(f func() error) error {
		asked <- f
		return <-answered
	}

	require.NoError(t, dist.Spawn(worker(func(rank int) error {
		if rank != 0 {
			return dist.Barrier()
		}
		var b bytes.Buffer
		err := elsewhere(func() error { return dist.WriteMetrics(&b) })
		if err == nil {
			require.Contains(t, b.String(), `goccl_calls_total{rank="0",group="default",collective="barrier"}`)
			require.Contains(t, b.String(), `goccl_rank_info{rank="2",`)
			err = dist.WriteMetrics(fullDisk{})
			require.ErrorIs(t, err, errFull)
			err = dist.Spawn(worker(func(int) error {
				var unbound bytes.Buffer
				require.ErrorIs(t, elsewhere(func() error { return dist.WriteMetrics(&unbound) }), dist.ErrUnbound)
				require.Empty(t, unbound.String())
				return dist.WriteMetrics(&unbound)
			}), dist.WithRanks(1))
		}
		return errors.Join(err, dist.Barrier())
	}), dist.WithRanks(3)))
	require.NoError(t, dist.WriteMetrics(&none))
	require.Empty(t, none.String())
}
