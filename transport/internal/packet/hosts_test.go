package packet_test

import (
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport/internal/packet"
	"github.com/stretchr/testify/require"
)

// The errors of calls and messages name the hosts of ranks that are on other ones.
func TestErrorsNameHosts(t *testing.T) {
	g, soon := onNodes(t, time.Minute, 0, 0, 1), ccl.WithTimeout(50*time.Millisecond)
	_, err := ccl.Recv(t.Context(), g[0], make([]int32, 1), 2, 0, soon)
	require.ErrorContains(t, err, "rank 0 waited for rank 2 (host host1) (to wait longer")
	for _, err := range each(2, func(rank int) error { return g[rank].Barrier(t.Context(), soon) }) {
		require.ErrorContains(t, err, "waited for rank 2 (host host1), which did not make call 1")
	}
	require.ErrorContains(t, g[2].Barrier(t.Context()), "waited for rank 2, which did not make call 1", "it is on this host")

	eps := packet.OnNodes(t, []int{0, 1})
	g = preferring(t, time.Minute, eps)
	packet.NoticeDeath(eps[0], 1)
	require.Regexp(t, `peer lost: rank 1 \(pid \d+, host host1\) is gone`, g[0].Barrier(t.Context()).Error())

	g = onNodes(t, time.Minute, 0, 0, 1)
	any := ccl.Irecv(t.Context(), g[0], make([]int32, 1), ccl.AnySource, 0)
	require.NoError(t, g[1].Close())
	require.NoError(t, g[2].Close())
	require.ErrorContains(t, any.Wait(t.Context()), "peer lost: ranks 1, 2 (rank 2 on host host1) have left the group")
}
