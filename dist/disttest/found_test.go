//go:build interleave

package disttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

// Ranks that share a variable get a result that depends on their order, and a seed shows it.
func TestFindsWhatRanksShare(t *testing.T) {
	shared := map[string]int{}
	err := find(t, 3, func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		shared["loss"] = rank
		mean := []int{rank}
		if err := dist.AllReduce(mean, dist.Sum); err != nil {
			return err
		}
		if rank == 0 && shared["loss"] != 2 { // the last rank's, if ranks come in their order
			return fmt.Errorf("the loss is that of rank %d", shared["loss"])
		}
		return nil
	})
	require.ErrorContains(t, err, "rank 0: the loss is that of rank ")
	require.Regexp(t, `\nagain: go test -tags interleave -run '\^TestFindsWhatRanksShare\$' \S+/dist/disttest -args -goccl.seed \d+ -goccl.count 1$`, err.Error())
}

// Ranks that wait for each other for ever are found at once.
func TestFindsWaitsInACircle(t *testing.T) {
	err := find(t, 2, func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithTimeout(-1)); err != nil {
			return err
		}
		_, err := dist.Recv([]int{0}, 1-rank, 0)
		return err
	})
	require.ErrorContains(t, err, "no goroutine can go on")
	require.ErrorContains(t, err, "rank 1")
}
