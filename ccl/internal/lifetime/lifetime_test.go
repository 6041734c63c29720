package lifetime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The last of the uses frees, whichever it is, and notes the failure before.
func TestLastUseFrees(t *testing.T) {
	for _, order := range [][]State{{Call, Hold, Hold, Hold}, {Hold, Call, Hold, Hold}, {Hold, Hold, Hold, Call}} {
		var l Lifetime
		require.False(t, l.State().Made())
		l.Open()
		_, ok := l.Enter()
		require.True(t, ok)
		require.True(t, l.Hold())
		require.True(t, l.Close())
		require.True(t, l.State().Closed())
		require.False(t, l.Close(), "the second")
		require.False(t, l.Leave(), "there are other uses")
		for i, part := range order {
			noted := 0
			require.Equal(t, i == len(order)-1, l.Release(part, func() { noted++ }))
			require.Equal(t, 1, noted)
		}
		require.False(t, l.Hold(), "after the end")
	}
}

// A hold of an open communicator is refused after Close, also while another use lasts.
func TestHoldOpen(t *testing.T) {
	var l Lifetime
	require.False(t, l.HoldOpen(), "it was not made")
	l.Open()
	require.True(t, l.HoldOpen())
	require.True(t, l.Close())
	require.False(t, l.HoldOpen(), "after Close")
	require.True(t, l.Hold(), "the endpoint is not free yet")
	for i := range 4 {
		require.Equal(t, i == 3, l.Release(Hold, func() {}), "hold %d", i)
	}
}

// A call does not start beside another, nor in a communicator that is closed or was not made.
func TestEnter(t *testing.T) {
	var l Lifetime
	was, ok := l.Enter()
	require.False(t, ok || was.Made() || l.Hold() || l.Close())
	l.Open()
	for range 2 {
		_, ok = l.Enter()
		require.True(t, ok)
		was, ok = l.Enter()
		require.False(t, ok || was.Closed())
		require.True(t, l.Leave())
	}
	require.True(t, l.Hold())
	_, ok = l.Enter()
	require.True(t, ok, "beside a hold")
	require.False(t, l.Leave())
	require.False(t, l.Release(Call, func() { require.Fail(t, "it is not closed") }))
	require.True(t, l.Close())
	was, ok = l.Enter()
	require.True(t, !ok && was.Closed())
}

// A hold that is the only use ends by Drop; beside other uses it ends by Release.
func TestDrop(t *testing.T) {
	var l Lifetime
	l.Open()
	require.True(t, l.HoldOpen())
	require.True(t, l.Drop())
	_, ok := l.Enter()
	require.True(t, ok)
	require.True(t, l.HoldOpen(), "beside a call")
	require.False(t, l.Drop(), "the call uses it")
	require.False(t, l.Release(Call, nil))
	require.True(t, l.Drop())
	require.True(t, l.HoldOpen())
	require.True(t, l.Close())
	require.False(t, l.Drop(), "Close was called")
}
