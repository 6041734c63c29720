package measure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int{
		"4": 4, "1K": 1 << 10, "1k": 1 << 10, "64KiB": 64 << 10, "256M": 256 << 20, "3MiB": 3 << 20, "2g": 2 << 30, "1GiB": 1 << 30,
	} {
		var s Size
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		require.EqualValues(t, want, s, text)
	}
	for _, text := range []string{"", "0", "-4", "K", "4KB", "1.5K", "1e3", "4 K", "9999999999G", "04"} {
		var s Size
		require.ErrorContains(t, s.UnmarshalText([]byte(text)), `"`+text+`"`, text)
	}
	require.Equal(t, []int{4, 16, 64, 256}, Sizes(4, 1023, 4))
	require.Equal(t, []int{4}, Sizes(4, 4, 2))
	require.Equal(t, []int{4}, Sizes(4, 1<<40, math.MaxInt))
}

// The factors are the same as in nccl-tests.
func TestBandwidth(t *testing.T) {
	for _, m := range []struct {
		collective string
		ranks      int
		alg, bus   float64
	}{
		{"all_reduce", 2, 1, 1},
		{"all_reduce", 8, 1, 1.75},
		{"all_gather", 2, 2, 1},
		{"all_gather", 8, 8, 7},
		{"broadcast", 8, 1, 1},
		{"reduce", 8, 1, 1},
		{"scan", 8, 1, 1},
		{"gather", 8, 8, 7},
		{"reduce_scatter", 8, 1, 0.875},
		{"scatter", 8, 1, 0.875},
		{"all_to_all", 8, 1, 0.875},
		{barrier, 8, 0, 0},
		{"all_reduce", 1, 1, 0},
	} {
		c := Case{Collective: m.collective, Ranks: m.ranks, Bytes: 1e6, DType: "float32"}
		if m.collective == barrier {
			c.Bytes = 0
		}
		alg, bus := c.Bandwidth(1000) // of a millisecond
		require.InDelta(t, m.alg, alg, 1e-9, "%+v", m)
		require.InDelta(t, m.bus, bus, 1e-9, "%+v", m)
	}
}

func TestCases(t *testing.T) {
	p := Plan{
		Collectives: []string{"all_reduce", "all_gather", "broadcast", barrier},
		DTypes:      []string{"uint8", "float64"},
		Ops:         []string{"sum", "max", "avg"},
		Ranks:       []int{2, 5},
		Bytes:       []int{1, 6, 100},
		InPlace:     []bool{true, false},
		Root:        1,
		Consume:     true,
	}
	require.NoError(t, p.Validate())
	cases := p.Cases()
	const perRanks = (3*2+2+1)*(3+2) + 1 // 1 and 6 bytes both become one float64
	require.Len(t, cases, 2*perRanks)
	seen := map[Case]bool{}
	for _, c := range cases {
		require.False(t, seen[c], "%+v", c)
		seen[c] = true
		require.Equal(t, c.Collective == "all_reduce", c.Op != "")
		require.Equal(t, c.Collective == "broadcast", c.Root == 1)
		require.Equal(t, c.Collective == barrier, !c.Consume && c.Bytes == 0 && c.DType == "")
		if c.DType == "float64" {
			require.Zero(t, c.Bytes%8)
			require.Equal(t, c.Bytes/8, c.Count())
		}
	}
	require.Equal(t, "all_reduce of uint8 by sum, in place, result read, 2 ranks", cases[0].Title())
	require.Equal(t, "broadcast of float64 from rank 1, result read, 2 ranks", cases[perRanks-2].Title())
	require.Equal(t, "barrier, 2 ranks", cases[perRanks-1].Title())
}

// Cases have a root, and forms in and out of place, only where the collective has them.
// Scattered inputs have whole blocks, and the size of a case is the real one.
func TestCasesOfAll(t *testing.T) {
	p := Plan{
		Collectives: names(ccl.Collectives()),
		DTypes:      []string{"float32"},
		Ops:         []string{"sum"},
		Ranks:       []int{3},
		Bytes:       []int{1, 8, 64, 1 << 10},
		InPlace:     []bool{true, false},
		Root:        2,
	}
	titles, sizes := map[string]int{}, map[string][]int{}
	for _, c := range p.Cases() {
		titles[c.Title()]++
		if forms := formsOf(c.collective()); c.InPlace == forms[0] {
			sizes[c.Collective] = append(sizes[c.Collective], c.Bytes)
		}
	}
	whole, blocks := []int{4, 8, 64, 1024}, []int{12, 60, 1020}
	require.Equal(t, map[string][]int{
		"all_reduce": whole, "reduce": whole, "scan": whole, "exscan": whole, "all_gather": whole, "broadcast": whole, "gather": whole,
		"reduce_scatter": blocks, "scatter": blocks, "all_to_all": blocks,
	}, sizes)
	require.Equal(t, map[string]int{
		"all_reduce of float32 by sum, in place, 3 ranks": 4, "all_reduce of float32 by sum, out of place, 3 ranks": 4,
		"reduce of float32 by sum to rank 2, in place, 3 ranks": 4, "reduce of float32 by sum to rank 2, out of place, 3 ranks": 4,
		"scan of float32 by sum, in place, 3 ranks": 4, "scan of float32 by sum, out of place, 3 ranks": 4,
		"exscan of float32 by sum, in place, 3 ranks": 4, "exscan of float32 by sum, out of place, 3 ranks": 4,
		"all_gather of float32, in place, 3 ranks": 4, "all_gather of float32, out of place, 3 ranks": 4,
		"gather of float32 to rank 2, in place, 3 ranks": 4, "gather of float32 to rank 2, out of place, 3 ranks": 4,
		"broadcast of float32 from rank 2, 3 ranks":           4,
		"reduce_scatter of float32 by sum, in place, 3 ranks": 3, "reduce_scatter of float32 by sum, out of place, 3 ranks": 3,
		"scatter of float32 from rank 2, in place, 3 ranks": 3, "scatter of float32 from rank 2, out of place, 3 ranks": 3,
		"all_to_all of float32, 3 ranks": 3,
	}, titles)
}

func TestValidate(t *testing.T) {
	for says, p := range map[string]Plan{
		`unknown collective "allreduce" (did you mean all_reduce?)`: {Collectives: []string{"allreduce"}},
		"barrier can be measured as well":                           {Collectives: []string{"all_to_one"}},
		`unknown dtype "float"`:                                     {DTypes: []string{"float"}},
		`unknown op "mean"`:                                         {Ops: []string{"mean"}},
		"0 ranks: from 1 to 65536":                                  {Ranks: []int{0}},
		"root 2 is not a rank of 2":                                 {Ranks: []int{3, 2}, Root: 2},
		"root -1":                                                   {Ranks: []int{2}, Root: -1},
		"2 is there twice":                                          {Ranks: []int{2, 4, 2}},
	} {
		require.ErrorContains(t, p.Validate(), says)
	}
	good := Setup{Budget: DefaultBudget, Entries: []string{"ring", Auto}}
	require.NoError(t, good.Validate())
	require.ErrorContains(t, (&Setup{Budget: DefaultBudget, Entries: []string{"ring", "ring"}}).Validate(), "ring is there twice")
	for says, b := range map[string]Budget{
		"time 0s":              {MinCalls: 1, MaxCalls: 1},
		"warm-up of -1":        {Time: 1, Warmup: -1, MinCalls: 1, MaxCalls: 1},
		"0 to 1 calls":         {Time: 1, MaxCalls: 1},
		"2 to 1 calls":         {Time: 1, MinCalls: 2, MaxCalls: 1},
		"the minimum first":    {Time: 1, MinCalls: 2, MaxCalls: 1},
		"a row needs some":     {Time: -1, MinCalls: 1, MaxCalls: 1},
		"at least 1":           {Time: 1},
		"warm-up of -9 calls:": {Time: 1, Warmup: -9},
	} {
		require.ErrorContains(t, b.Validate(), says)
	}
}

// Buffers that exceed the memory are rejected before they are allocated.
func TestMemory(t *testing.T) {
	c := Case{Collective: "all_gather", Ranks: 4, Bytes: 1 << 20, InPlace: true}
	require.NoError(t, c.checkMemory(36<<20, nil))
	require.NoError(t, c.checkMemory(0, nil), "the available memory is unknown")
	require.ErrorContains(t, c.checkMemory(36<<20-1, nil), "needs 36 MiB of memory, and 35 are available")
	c.InPlace = false
	require.NoError(t, c.checkMemory(24<<20, nil))
	require.Error(t, c.checkMemory(24<<20-1, nil))
	c.Collective = "gather" // only the root has all
	require.NoError(t, c.checkMemory(15<<20, nil))
	require.Error(t, c.checkMemory(15<<20-1, nil))
	c.Buckets = 2
	require.NoError(t, c.checkMemory(30<<20, nil))
	require.Error(t, c.checkMemory(30<<20-1, nil))
	c.Collective, c.Ranks, c.Bytes = "all_gather", 1<<16, 1<<40
	require.Error(t, c.checkMemory(1<<62, nil), "more than can be counted")
}
