package ddp_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// Together plans have all slips and faults, each option, and steps of all and of a few ranks.
func TestAllIsPlanned(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(500) {
		for _, training := range NewPlan(seed, 1+int(seed%4)).Trainings {
			for option, isSet := range map[string]bool{
				"of float16": slices.Contains(training.Types, ccl.Float16), "of bfloat16": slices.Contains(training.Types, ccl.BFloat16),
				"mixed": slices.Min(training.Types) != slices.Max(training.Types), "views": training.Views, "hooked": training.Hooked, "unused": training.Unused,
				"static": training.Static, "shares": training.Shares, "in place": slices.Max(training.Lengths) >= 1<<16,
				"shards": training.Shards > 0, "a shard on each rank": training.Shards == 1+int(seed%4),
			} {
				seen[option] = seen[option] || isSet
			}
			for _, ph := range training.Phases {
				seen["joined"] = seen["joined"] || ph.Join
				seen["unequal counts"] = seen["unequal counts"] || slices.Min(ph.Counts) == 0
				for _, s := range ph.Steps {
					if s.Fault != nil {
						seen[s.Fault.Kind] = true
						seen["loose"] = seen["loose"] || s.Fault.Loose
					}
					for _, turn := range s.Turns {
						seen[turn.Slip] = true
						seen["accumulated"] = seen["accumulated"] || len(turn.NoSync) > 1
					}
				}
			}
		}
	}
	for _, want := range []string{
		"of float16", "of bfloat16", "mixed", "views", "hooked", "unused", "static", "shares", "in place", "shards", "a shard on each rank", "joined", "unequal counts", "loose", "accumulated",
		SlipTwice, SlipRange, SlipOutside, SlipNoSync, SlipNoLoop, SlipLoop,
		FaultUnready, FaultHook, FaultContext, FaultFails, FaultReturns, FaultCloses, FaultLeaves, FaultStops, FaultNested, FaultNoWait, FaultAbandons, FaultBreaks,
	} {
		require.True(t, seen[want], want)
	}
}

// The same seed draws the same plan, another seed another one.
func TestPlanSeed(t *testing.T) {
	require.Equal(t, NewPlan(7, 3), NewPlan(7, 3))
	require.NotEqual(t, NewPlan(7, 3).Trainings, NewPlan(8, 3).Trainings)
}

// The definition says what the documents say, here in the words of one parameter of one element.
func TestDefinition(t *testing.T) {
	const ranks = 3
	step := func(turns ...Turn) *Step { return &Step{Number: 4, Turns: turns} }
	ready, quiet, unused := Turn{Last: []int{0}}, Turn{NoSync: [][]int{{0, 0}}}, Turn{}
	start := func(training Training) (*Definition, func(rank int, batches ...int) float64) {
		training.Lengths, training.Types = []int{1}, []ccl.DType{ccl.Float64}
		d := NewDefinition(&Plan{Seed: 5, Ranks: ranks}, &training)
		return d, func(rank int, batches ...int) (sum float64) {
			for _, batch := range append([]int{0}, batches...) {
				sum += d.Values(4, rank, batch, 0)[0]
			}
			return sum
		}
	}

	// The mean is that of the sum in the order of ranks, and counts what was accumulated. The
	// optimizer subtracts it.
	d, g := start(Training{Hooked: true})
	before := d.Data[1][0][0]
	mean := (g(0, 1) + g(1, 1, 1) + g(2, 1)) / 3
	after := d.Step(step(ready, quiet, ready), []int{0, 1, 2}, false)
	require.Equal(t, map[int][][]float64{0: {{-mean}}, 1: {{-mean}}, 2: {{-mean}}}, after)
	require.Equal(t, before+mean, d.Data[1][0][0])

	// Within Join the mean is over the ranks that train. The end of Join shares what the lowest of the
	// longest has.
	d, g = start(Training{Shares: true})
	mean = (g(1, 1) + g(2, 1)) / 2
	require.Equal(t, map[int][][]float64{1: {{mean}}, 2: {{mean}}}, d.Step(step(ready, ready, ready), []int{1, 2}, true))
	require.Equal(t, []float64{before, before - mean, before - mean}, []float64{d.Data[0][0][0], d.Data[1][0][0], d.Data[2][0][0]})
	require.Equal(t, d.Buffers[1], d.Buffers[0]) // of the lowest rank that trains
	d.EndJoin([]int{0, 1, 1})
	require.Equal(t, before-mean, d.Data[0][0][0])

	// A gradient that is not ready counts as zero. One that is ready nowhere is unchanged, or zero if
	// New made it.
	d, g = start(Training{Unused: true})
	mean = g(2, 1) / 3
	require.Equal(t, [][]float64{{mean}}, d.Step(step(unused, unused, ready), []int{0, 1, 2}, false)[0])
	require.Equal(t, [][]float64{{g(1)}}, d.Step(step(unused, unused, unused), []int{0, 1, 2}, false)[1])
	d, _ = start(Training{Unused: true, Views: true})
	require.Equal(t, [][]float64{{0}}, d.Step(step(unused, unused, unused), []int{0, 1, 2}, false)[1])

	// With StaticGraph a gradient counts if it was ready in the first step too.
	d, g = start(Training{Static: true})
	d.Step(step(unused, quiet, unused), []int{0, 1, 2}, false)
	require.Equal(t, [][]float64{{g(1, 1) / 3}}, d.Step(step(ready, ready, quiet), []int{0, 1, 2}, false)[0])
}

// With logical shards the mean is that of the sums in the order of their tree, and so is what buffers move by.
func TestDefinitionOfShards(t *testing.T) {
	ones := [][]float64{{1}, {0x1p-24}, {0x1p-24}, {0x1p-24}, {2}, {3}} // 1 + 2^-24 is 1
	d := &Definition{t: &Training{Lengths: []int{1}, Types: []ccl.DType{ccl.Float32}, Shards: 6}}
	require.Equal(t, []float64{rounded(ccl.Float32, (1+0x1p-23+5)/6)}, d.addUp(0, ones, 6, false))

	d = NewDefinition(&Plan{Seed: 5, Ranks: 2}, &Training{Lengths: []int{1}, Types: []ccl.DType{ccl.Float64}, Shards: 2})
	before := d.Buffers[0][0]
	changes := (before + d.Values(4, 0, 0, 0)[0] - before) + (before + d.Values(4, 1, 0, 0)[0] - before)
	mean := (d.Values(4, 0, 0, 0)[0] + d.Values(4, 0, 1, 0)[0] + d.Values(4, 1, 0, 0)[0] + d.Values(4, 1, 1, 0)[0]) / 2
	after := d.Step(&Step{Number: 4, Turns: []Turn{{Last: []int{0}}, {Last: []int{0}}}}, []int{0, 1}, false)
	require.InEpsilon(t, mean, after[1][0][0], 1e-12)
	require.Equal(t, [][]float64{{before + changes/2}, {before + changes/2}}, d.Buffers)
}

// A mean of bfloat16 is rounded once, and within Join its sum as well.
func TestDefinitionOfHalves(t *testing.T) {
	d := &Definition{t: &Training{Lengths: []int{1}, Types: []ccl.DType{ccl.BFloat16}}}
	thirds := [][]float64{{257}, {3}, {5}} // 265 / 3 = 88.33; as bfloat16 the sum is 264, a third of it 88
	require.Equal(t, []float64{88.5}, d.addUp(0, thirds, 3, false))
	require.Equal(t, []float64{88}, d.addUp(0, thirds, 3, true))
}
