package ccl_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// Errors of a group use its rank numbers and add the ranks of the job.
func TestErrorsOfGroupsNameRanksOfTheJob(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 4)
		made := make([]*ccl.Communicator, 4)
		require.NoError(t, errors.Join(each(4, func(r int) (err error) {
			made[r], err = g[r].NewGroup(bg, []int{1, 3})
			return err
		})...))
		defer made[1].Close()
		defer made[3].Close()

		_, err := ccl.Recv(bg, made[1], []int32{1}, 1, 0, ccl.WithTimeout(20*time.Millisecond))
		require.ErrorContains(t, err, " (of the job: rank 0 is 1, rank 1 is 3)")

		err = ccl.AllReduce(bg, made[3], []int32{1}, []int32{1}, ccl.Sum, ccl.WithTimeout(20*time.Millisecond))
		require.ErrorContains(t, err, "waited for rank 0, which did not make call 1 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call) (of the job: rank 0 is 1, rank 1 is 3)")
		var failed *ccl.CollectiveFailedError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, []int{1, 3}, failed.GlobalRanks)
		require.Equal(t, 0, failed.Peer)
		_ = made[1].Barrier(bg) // its first call that fails says no more than the cause
		for _, r := range []int{1, 3} {
			err = made[r].Barrier(bg)
			require.ErrorContains(t, err, fmt.Sprintf("rank %d: the group has failed before", r/2))
			require.ErrorContains(t, err, " (of the job: rank 0 is 1, rank 1 is 3)")
		}

		err = g[1].Barrier(bg, ccl.WithTimeout(20*time.Millisecond))
		require.NotContains(t, err.Error(), "of the job")
	})
}
