package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport/local"
)

func TestOurs(t *testing.T) {
	o := options{sizes: []int{0, 4, 1 << 12, 20004}, budget: time.Millisecond, limit: time.Minute}
	for _, ranks := range []int{2, 3, 8} {
		rows, err := measureOurs(t.Context(), ranks, o)
		require.NoError(t, err)
		require.Len(t, rows, len(o.sizes))
		for i, r := range rows {
			require.Equal(t, ours, r.contestant)
			require.Equal(t, ranks, r.ranks)
			require.Equal(t, o.sizes[i], r.bytes)
			require.GreaterOrEqual(t, r.calls, minCalls)
			require.LessOrEqual(t, r.calls, maxCalls)
			require.Positive(t, r.least)
			require.LessOrEqual(t, r.least, r.p50)
			require.LessOrEqual(t, r.p50, r.p99)
			require.Zero(t, r.errors)
		}
	}
}

// What is not the sum is counted.
func TestWrongElementsAreCounted(t *testing.T) {
	c, err := ccl.New(t.Context(), local.New(1)[0])
	require.NoError(t, err)
	defer c.Close()
	v := vector{c, make([]float32, 20)}
	_, err = v.round(t.Context(), 5)
	require.NoError(t, err)
	require.Zero(t, v.wrong(5))
	v.x[3] += 100
	v.x[17] -= 100
	require.EqualValues(t, 2, v.wrong(5))
	require.EqualValues(t, 20, v.wrong(6))
}

func TestOursEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := measureOurs(ctx, 2, tiny())
	require.ErrorIs(t, err, context.Canceled)
}
