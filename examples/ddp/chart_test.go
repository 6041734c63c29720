package main

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"
)

// trained returns a run whose first loss is first.
func trained(ranks int, first float64, epochs ...epoch) *run {
	epochs[0].losses = []float64{first}
	r := &run{ranks: ranks}
	for _, e := range epochs {
		r.add(e)
	}
	return r
}

func TestCurve(t *testing.T) {
	c := curve(trained(1, 2, epoch{loss: 0.5, elapsed: time.Second}, epoch{loss: 0, elapsed: 3 * time.Second}))
	const floor = 1e-6
	require.Equal(t, plotter.XYs{{X: 0, Y: 2}, {X: 1, Y: 0.5}, {X: 4, Y: floor}}, c)

	require.InDelta(t, math.Log10(2), at(c, 0), 1e-12)
	require.InDelta(t, 0, at(c, 0.5), 1e-12, "halfway from 2 to 0.5 on a logarithmic scale")
	require.InDelta(t, math.Log10(0.5), at(c, 1), 1e-12)
	require.InDelta(t, math.Log10(floor), at(c, 4), 1e-12)
	require.True(t, math.IsNaN(at(c, 4.001)), "nothing after the end")
}

func TestSketch(t *testing.T) {
	slow := trained(1, 2.4, epoch{loss: 0.01, elapsed: 200 * time.Second})
	fast := trained(16, 2.4, epoch{loss: 0.01, elapsed: 20 * time.Second})
	for _, runs := range [][]*run{{slow, fast}, {fast, slow}} {
		plain := sketch(runs, false)
		require.Contains(t, plain, "··· "+plural(runs[0].ranks)+", ─── "+plural(runs[1].ranks))
		require.Contains(t, plain, "200.00 s")
		require.NotContains(t, plain, "\x1b")
		for _, line := range strings.Split(plain, "\n") {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
		}
	}
	require.Contains(t, sketch([]*run{slow, fast}, true), "\x1b[")
	require.Contains(t, sketch([]*run{slow}, false), "time: ··· 1 rank")
}
