package config

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

const selection = `version: 1
algorithms:
  plain: {module: plain}
  fancy: {module: fancy}
  small: {module: fancy, params: {chunk: 16}}
  sized: {module: plain, world_size: 3}
rules:
  - {collective: broadcast, algorithm: plain}
  - {bytes: 1MiB-, ranks: 4-, dtype: float32, algorithm: fancy}
  - {bytes: 1MiB-, op: max, algorithm: plain}
  - {collective: all_reduce, bytes: 8KiB-512KiB, algorithm: fancy}
  - {ranks: 2, algorithm: plain}
  - {bytes: -1KiB, algorithm: small}
`

// The first rule that matches chooses, by collective, bytes, ranks, dtype and op.
func TestFirstRuleThatMatches(t *testing.T) {
	s := resolve(t, selection, Request{})
	const big = 1 << 20
	for _, c := range []struct {
		collective ccl.Collective
		bytes      int
		ranks      int
		dtype      ccl.DType
		op         ccl.Op
		entry, why string
	}{
		{ccl.CollBroadcast, big, 4, ccl.Float32, ccl.Sum, "plain", "ccl.yaml:8: rule 1"},
		{ccl.CollBroadcast, 0, 1, ccl.Uint8, ccl.Sum, "plain", "ccl.yaml:8: rule 1"},
		{ccl.CollAllReduce, big, 4, ccl.Float32, ccl.Sum, "fancy", "ccl.yaml:9: rule 2"},
		{ccl.CollAllReduce, big, 4, ccl.Float32, ccl.Max, "fancy", "ccl.yaml:9: rule 2"},
		{ccl.CollAllGather, big, 5, ccl.Float32, ccl.Sum, "fancy", "ccl.yaml:9: rule 2"},
		{ccl.CollAllReduce, big, 3, ccl.Float32, ccl.Max, "plain", "ccl.yaml:10: rule 3"},
		{ccl.CollAllReduce, big, 4, ccl.Int32, ccl.Max, "plain", "ccl.yaml:10: rule 3"},
		{ccl.CollAllReduce, big - 1, 2, ccl.Float32, ccl.Max, "plain", "ccl.yaml:12: rule 5"},
		{ccl.CollAllReduce, 512 << 10, 3, ccl.Float32, ccl.Sum, "fancy", "ccl.yaml:11: rule 4"},
		{ccl.CollAllReduce, 8 << 10, 3, ccl.Float32, ccl.Sum, "fancy", "ccl.yaml:11: rule 4"},
		{ccl.CollAllReduce, 8<<10 - 1, 2, ccl.Float32, ccl.Sum, "plain", "ccl.yaml:12: rule 5"},
		{ccl.CollAllGather, 0, 2, ccl.Int32, ccl.Sum, "plain", "ccl.yaml:12: rule 5"},
		{ccl.CollAllGather, 1 << 10, 3, ccl.Int64, ccl.Sum, "small", "ccl.yaml:13: rule 6"},
	} {
		choice, err := s.Choose(ccl.Shape{Collective: c.collective, Bytes: c.bytes, Ranks: c.ranks, DType: c.dtype, Op: c.op}, "")
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.entry, choice.Entry, "%+v", c)
		require.Equal(t, c.why, choice.Why, "%+v", c)
		require.Same(t, choice.Algorithm.Kernels[c.collective], choice.Kernel)
		require.Same(t, s.candidate(c.entry).algorithm, choice.Algorithm)
		require.Equal(t, s.candidate(c.entry).params, choice.Params)
	}
}

// What cannot be done is refused, with who chose it, why it cannot, and
// what can; nothing else is taken in silence.
func TestChooseNeverFallsBack(t *testing.T) {
	auto := resolve(t, selection, Request{})
	fixed := resolve(t, selection+"defaults: {algorithm: small}\n", Request{})
	option := resolve(t, selection, Request{Algorithm: "small"})
	lonely := resolve(t, "version: 1\nalgorithms: {a: {module: fancy}}\ndefaults: {algorithm: a}\n", Request{})
	reduce := ccl.Shape{Collective: ccl.CollAllReduce, Bytes: 8 << 20, Ranks: 4, DType: ccl.Float64, Op: ccl.Avg}
	broadcast := ccl.Shape{Collective: ccl.CollBroadcast, Ranks: 4}
	for _, c := range []struct {
		s     *Settings
		shape ccl.Shape
		force string
		want  string
	}{
		{auto, ccl.Shape{Collective: ccl.CollAllReduce, Bytes: 2048, Ranks: 4, DType: ccl.Int32}, "",
			"ccl: all_reduce (int32, sum, 2048 bytes, 4 ranks): not implemented: no rule of ccl.yaml matches; entries that can: plain, small"},
		{auto, ccl.Shape{Collective: ccl.CollAllReduce, Bytes: 64 << 10, Ranks: 4, DType: ccl.Float64}, "",
			"ccl: all_reduce (float64, sum, 65536 bytes, 4 ranks): not implemented by fancy: float64 is too long (chosen by ccl.yaml:11: rule 4); entries that can: plain"},
		{auto, ccl.Shape{Collective: ccl.CollAllGather, Bytes: 8, Ranks: 4, DType: ccl.Int64}, "",
			"ccl: all_gather (int64, 8 bytes, 4 ranks): not implemented by small: 8 bytes are less than a chunk of 16 (chosen by ccl.yaml:13: rule 6); entries that can: plain"},
		{auto, ccl.Shape{Collective: ccl.CollAllReduce, Bytes: 1024, Ranks: 4, DType: ccl.Int64}, "fancy",
			"ccl: all_reduce (int64, sum, 1024 bytes, 4 ranks): not implemented by fancy: 1024 bytes are less than a chunk of 4KiB (chosen by option); entries that can: plain, small"},
		{fixed, reduce, "",
			"ccl: all_reduce (float64, avg, 8388608 bytes, 4 ranks): not implemented by small: float64 is too long (chosen by ccl.yaml:14: defaults.algorithm); entries that can: plain"},
		{fixed, broadcast, "",
			"ccl: broadcast (0 bytes, 4 ranks): not implemented by small: algorithm fancy has no kernel for broadcast (chosen by ccl.yaml:14: defaults.algorithm); entries that can: plain"},
		{option, broadcast, "",
			"ccl: broadcast (0 bytes, 4 ranks): not implemented by small: algorithm fancy has no kernel for broadcast (chosen by option); entries that can: plain"},
		{lonely, broadcast, "",
			"ccl: broadcast (0 bytes, 4 ranks): not implemented by a: algorithm fancy has no kernel for broadcast (chosen by ccl.yaml:3: defaults.algorithm); entries that can: none"},
		{auto, ccl.Shape{Collective: 99, Ranks: 4}, "plain",
			"ccl: collective(99) (0 bytes, 4 ranks): not implemented by plain: algorithm plain has no kernel for collective(99) (chosen by option); entries that can: none"},
	} {
		choice, err := c.s.Choose(c.shape, c.force)
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, ccl.ErrNotImplemented)
		require.Zero(t, choice)
	}
}

func TestForcedEntry(t *testing.T) {
	s := resolve(t, selection+"defaults: {algorithm: fancy}\n", Request{})
	shape := ccl.Shape{Collective: ccl.CollAllReduce, Bytes: 1 << 20, Ranks: 4, DType: ccl.Float32}
	choice, err := s.Choose(shape, "plain")
	require.NoError(t, err)
	require.Equal(t, "plain", choice.Entry)
	require.Equal(t, "option", choice.Why)
	require.Nil(t, choice.Params)

	for force, want := range map[string]string{
		"plian": `ccl: all_reduce: ccl.yaml: there is no entry "plian" in algorithms (did you mean plain?); entries: plain, fancy, small, sized`,
		"auto":  `ccl: all_reduce: ccl.yaml: there is no entry "auto" in algorithms; entries: plain, fancy, small, sized`,
		"sized": "ccl: all_reduce: sized is for a world size of 3 (ccl.yaml:6), but here it is 4 (the number of ranks is 4)",
	} {
		_, err := s.Choose(shape, force)
		require.EqualError(t, err, want)
		require.ErrorAs(t, err, new(*ccl.InvalidArgumentError))
	}
}

// Supports sees the parameters of its entry, and not those that the caller left.
func TestSupportsSeesItsParams(t *testing.T) {
	registry := testRegistry()
	fancy := registry["fancy"]
	var seen []ccl.Shape
	fancy.Kernels[ccl.CollAllReduce].Supports = func(s ccl.Shape) error {
		seen = append(seen, s)
		return nil
	}
	s := resolve(t, selection, Request{Registry: registry})
	shape := ccl.Shape{Collective: ccl.CollAllReduce, Bytes: 512, Ranks: 4, DType: ccl.Int32, Topology: s.Topology(), Params: "of the caller", Eager: true}
	choice, err := s.Choose(shape, "small")
	require.NoError(t, err)
	shape.Params, shape.Eager = choice.Params, false
	require.Equal(t, []ccl.Shape{shape}, seen)
	require.Equal(t, ccl.ByteSize(16), choice.Params.(*fancyParams).Chunk)
}

// The error of a kernel that panics in Supports names its entry, as does the error of a panic in Run.
func TestPanicNamesTheEntry(t *testing.T) {
	registry := testRegistry()
	fancy := registry["fancy"]
	fancy.Kernels[ccl.CollAllReduce].Supports = func(ccl.Shape) error { panic("faulty") }
	s := resolve(t, selection, Request{Registry: registry})
	_, err := s.Choose(ccl.Shape{Collective: ccl.CollAllReduce, Bytes: 512, Ranks: 4, DType: ccl.Int32}, "small")
	var panicked *ccl.KernelPanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "small all_reduce", panicked.Kernel)
}

func TestChooseIsSafeForConcurrentUse(t *testing.T) {
	s := resolve(t, selection, Request{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for bytes := range 200 {
				for _, collective := range ccl.Collectives() {
					_, _ = s.Choose(ccl.Shape{Collective: collective, Bytes: bytes << 10, Ranks: 4, DType: ccl.Float32}, "")
					_, _ = s.Choose(ccl.Shape{Collective: collective, Bytes: bytes << 10, Ranks: 4, DType: ccl.Float64}, "fancy")
				}
			}
		})
	}
	group.Wait()
}
