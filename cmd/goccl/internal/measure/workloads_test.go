package measure

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/workload"
)

func workloadPlan(ranks ...int) *Plan {
	return &Plan{Workloads: []string{"lenet5"}, Ranks: ranks, Compute: 200 * time.Microsecond}
}

// Steps of a workload are measured with both kinds of backward, and all gradients are the mean.
func TestWorkloads(t *testing.T) {
	j := job(t)
	p := workloadPlan(1, 2, 3)
	require.NoError(t, p.Validate())
	cases := p.Cases()
	require.Len(t, cases, 2*3)
	for i, c := range cases {
		require.Equal(t, i%2 == 0, c.Wait)
		require.Equal(t, 4*61_706, c.Bytes)
		r, err := j.Measure(t.Context(), c)
		require.NoError(t, err, "%+v", c)
		var names []string
		for _, row := range r.Rows {
			require.Zero(t, row.Errors, "%+v: %+v", c, row)
			if row.Entry != CoreToCore { // needs two free cores
				names = append(names, row.Library+" "+row.Entry)
				require.Equal(t, 2, row.Calls, "%+v: %+v", c, row)
			}
		}
		require.Equal(t, []string{"yardstick floor", "yardstick backward", "yardstick barrier",
			"goccl overlapped", "goccl at_end", "goccl views", "goccl copies"}, names)
		if c.Wait { // which is at least that long
			require.GreaterOrEqual(t, r.Yardstick(Backward).Min, 200.0)
			require.GreaterOrEqual(t, r.Row(Overlapped).Min, 200.0)
		}
		require.Equal(t, ratio(r.Row(Views).P50, r.Floor().P50), r.Row(Views).XFloor)
	}
	require.Equal(t, "lenet5 of float32, 0.2468 MB, backward waits and leaves the cores free for 200us, 1 rank", cases[0].Title())
	require.Equal(t, "lenet5 of float32, 0.2468 MB, backward computes on the ranks' cores for 200us, 3 ranks", cases[5].Title())
}

// What follows from medians: of 400 us at the end 100 remain, which hides three quarters.
func TestRowsOfSteps(t *testing.T) {
	of := func(overlapped float64) Row {
		r := Result{Case: workloadPlan(2).Cases()[0]}
		r.Rows = r.compared([]Row{
			{Library: Yardstick, Entry: Floor, P50: 350}, {Library: Yardstick, Entry: Backward, P50: 1000},
			{Library: Library, Entry: Overlapped, P50: overlapped}, {Library: Library, Entry: AtEnd, P50: 1400},
			{Library: Library, Entry: Views, P50: 385}, {Library: Library, Entry: Copies, P50: 525},
		})
		require.Equal(t, 400.0, r.Row(AtEnd).Added)
		require.Equal(t, 1.1, r.Row(Views).XFloor)
		require.Equal(t, 1.5, r.Row(Copies).XFloor)
		require.Zero(t, r.Row(Overlapped).XFloor)
		return r.Row(Overlapped)
	}
	require.Equal(t, Row{Library: Library, Entry: Overlapped, P50: 1100, Added: 100, Hidden: 0.75, XAtEnd: 0.7857}, of(1100))
	require.Equal(t, -0.25, of(1500).Hidden, "a step that is longer than with communication at the end")
}

// Backward takes its time in proportion to operations, and makes parameters ready in reverse.
func TestBackward(t *testing.T) {
	w := workload.Workload{Layers: []workload.Layer{
		{Operations: 1, Parameters: make([]workload.Parameter, 2)}, {Operations: 2}, {Operations: 7, Parameters: make([]workload.Parameter, 1)},
	}}
	for _, b := range []*backward{{time: 10 * time.Millisecond}, {time: 10 * time.Millisecond, compute: newComputation(time.Millisecond, 0, 0)}} {
		t.Run(fmt.Sprint("waits ", b.compute == nil), func(t *testing.T) {
			var order []int
			var at []time.Duration
			start := time.Now()
			b.run(&w, func(parameter int) {
				order, at = append(order, parameter), append(at, time.Since(start))
			})
			require.Equal(t, []int{2, 1, 0}, order)
			require.True(t, slices.IsSorted(at))
			if b.compute == nil {
				require.GreaterOrEqual(t, at[0], 7*time.Millisecond)
				require.GreaterOrEqual(t, at[1], 10*time.Millisecond)
			}
		})
	}
}

func TestWorkloadsRefuse(t *testing.T) {
	p := workloadPlan(2)
	p.Workloads = []string{"lenet"}
	require.EqualError(t, p.Validate(), `unknown workload "lenet": want one of lenet5, resnet50, bert_base, vgg16, gpt2_small`)
	p.Workloads = []string{"lenet5", "lenet5"}
	require.ErrorContains(t, p.Validate(), "lenet5 is there twice")
	c := workloadPlan(2).Cases()[0]
	require.ErrorContains(t, c.checkMemory(1<<20, []string{Private}), "lenet5 of float32")
	require.NoError(t, c.checkMemory(1<<21, []string{Private}), "2 ranks with 4 vectors of 241 KiB")
}
