package chart

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// Workloads of one kind of backward and one transport share a row of panels, with bars for each.
func TestSteps(t *testing.T) {
	d := documented()
	d.Results = nil
	add := func(name string, wait bool) {
		d.Results = append(d.Results, measure.Result{
			Case: measure.Case{Collective: name, Ranks: 2, Bytes: 400, Compute: 5e7, Wait: wait}, Transport: "local",
			Rows: []measure.Row{
				{Library: measure.Yardstick, Entry: measure.Backward, Calls: 9, P50: 50_000},
				{Library: measure.Library, Entry: measure.Overlapped, Calls: 9, P50: 51_000, Added: 1000},
				{Library: measure.Library, Entry: measure.AtEnd, Calls: 9, P50: 60_000, Added: 10_000},
				{Library: measure.Library, Entry: measure.Views, Calls: 9, P50: 9000, XFloor: 0.9},
				{Library: measure.Library, Entry: measure.Copies, Calls: 9, P50: 15_000, XFloor: 1.5},
			},
		})
	}
	add("lenet5", true)
	add("resnet50", true)
	add("lenet5", false)
	picture, err := SVG(d)
	require.NoError(t, err)
	all := texts(t, picture)
	for text, times := range map[string]int{
		"backward waits and leaves the cores free for 50ms, 2 ranks over local": 1,
		"backward computes on the ranks' cores for 50ms, 2 ranks over local":    1,
		"lenet5": 4, "resnet50": 2, "backward": 2, "all at the end": 2, "overlapped": 2, "views": 2, "copies": 2,
		"a step, ms": 2,
		"bars: medians; backward alone, and what communication adds to it": 1,
	} {
		require.Equal(t, times, all[text], text)
	}
}
