package packet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/packet"
	"github.com/stretchr/testify/require"
)

// A rank that leaves ends no receive from any rank as long as others are there: its timeout names that one, and those that wait for the
// receiver. A rank that dies ends it.
func TestAnySourceWithoutASender(t *testing.T) {
	eps := packet.OnNodes(t, []int{0, 1, 2, 3})
	g := preferring(t, time.Minute, eps)
	waiting := ccl.Irecv(t.Context(), g[1], make([]int32, 1), 2, 0)
	require.NoError(t, g[0].Close())
	packet.PretendWait(eps[2], 3)
	late := &transport.TimeoutError{}
	for len(late.Left)*len(late.Waiting) == 0 { // a rank counts as waiting once it sleeps
		_, err := ccl.Recv(t.Context(), g[2], make([]int32, 1), ccl.AnySource, 0, ccl.WithTimeout(50*time.Millisecond))
		require.ErrorAs(t, err, &late)
	}
	require.Equal(t, []int{0}, late.Left)
	require.Equal(t, []int{1}, late.Waiting)
	require.Equal(t, []int{0, 3}, late.Behind)

	any := ccl.Irecv(t.Context(), g[2], make([]int32, 1), ccl.AnySource, 0)
	packet.NoticeDeath(eps[2], 3)
	lost, ok := errors.AsType[*transport.PeerLostError](any.Wait(t.Context()))
	require.True(t, ok, "%v", any.Err())
	require.Equal(t, 3, lost.Rank)
	require.NoError(t, ccl.Send(t.Context(), g[2], []int32{1}, 1, 0))
	require.NoError(t, waiting.Wait(t.Context()))
}
