package main

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestCurve(t *testing.T) {
	c := newCurve("x", 2, []epoch{
		{loss: 0.5, elapsed: time.Second},
		{loss: 0, elapsed: 3 * time.Second},
	})
	require.Equal(t, curve{"x", []float64{0, 1, 4}, []float64{2, 0.5, lossFloor}}, c)

	require.InDelta(t, 2, c.at(0), 1e-12)
	require.InDelta(t, 1, c.at(0.5), 1e-12, "halfway from 2 to 0.5 on a logarithmic scale")
	require.InDelta(t, 0.5, c.at(1), 1e-12)
	require.InDelta(t, lossFloor, c.at(4), 1e-12)
	require.True(t, math.IsNaN(c.at(4.001)), "nothing after the end")
}

func TestSketch(t *testing.T) {
	slow := newCurve("1 rank", 2.4, []epoch{{loss: 0.01, elapsed: 200 * time.Second}})
	fast := newCurve("16 ranks", 2.4, []epoch{{loss: 0.01, elapsed: 20 * time.Second}})
	plain := sketch([]curve{slow, fast}, false)
	require.Contains(t, plain, "··· 1 rank, ─── 16 ranks")
	require.Contains(t, plain, "200.00 s")
	require.NotContains(t, plain, "\x1b")
	for _, line := range strings.Split(plain, "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
	require.Contains(t, sketch([]curve{slow, fast}, true), "\x1b[")
}
