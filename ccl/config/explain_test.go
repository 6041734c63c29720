package config

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func TestExplain(t *testing.T) {
	s := resolve(t, selection, Request{})
	shape := ccl.Shape{Collective: ccl.CollAllReduce, Bytes: 1 << 20, Ranks: 4, DType: ccl.Float32, Op: ccl.Max, Topology: s.Topology()}
	require.Equal(t, []Verdict{
		{1, "ccl.yaml:8", "plain", false, "collective: broadcast, and the call is all_reduce"},
		{2, "ccl.yaml:9", "fancy", true, "the first rule that matches"},
		{3, "ccl.yaml:10", "plain", false, "matches too, but rule 2 goes first"},
		{4, "ccl.yaml:11", "fancy", false, "bytes: 8KiB-512KiB, and the call has 1MiB"},
		{5, "ccl.yaml:12", "plain", false, "ranks: 2, and the group has 4"},
		{6, "ccl.yaml:13", "small", false, "bytes: 0-1KiB, and the call has 1MiB"},
	}, s.Explain(shape, "", 0).Rules)

	shape.DType, shape.Op = ccl.Int32, ccl.Sum
	rules := s.Explain(shape, "", 0).Rules
	require.Equal(t, "dtype: float32, and the call has int32", rules[1].Why)
	require.Equal(t, "op: max, and the call has sum", rules[2].Why)
	shape.Collective = ccl.CollAllGather
	require.Equal(t, "op: max, and all_gather takes none", s.Explain(shape, "", 0).Rules[2].Why)
	shape.Collective = ccl.CollBroadcast
	rules = s.Explain(shape, "", 0).Rules
	require.Equal(t, Verdict{1, "ccl.yaml:8", "plain", true, "the first rule that matches"}, rules[0])
	require.Equal(t, "algorithm fancy has no kernel for broadcast", rules[1].Why)

	// If the algorithm is fixed, the explanation of a matching rule shows what overrides it.
	require.Equal(t, "matches, but the call names its algorithm", s.Explain(shape, "plain", 0).Rules[0].Why)
	fixed := resolve(t, selection+"defaults: {algorithm: plain}\n", Request{})
	require.Equal(t, "matches, but defaults.algorithm is plain (ccl.yaml:14)", fixed.Explain(shape, "", 0).Rules[0].Why)
	for _, e := range []Explanation{s.Explain(shape, "plain", 0), fixed.Explain(shape, "", 0)} {
		for _, v := range e.Rules {
			require.False(t, v.Chosen)
		}
	}
}

// The number of nodes is 1 for a group without two levels.
func TestExplainNodes(t *testing.T) {
	s := resolve(t, entriesOfRules+"  - {nodes: 2-3, algorithm: other}\n  - {nodes: 1, algorithm: plain}\n  - {algorithm: other}\n", Request{})
	for n, chosen := range []int{2, 2, 1, 1, 3} {
		rules := s.Explain(ccl.Shape{Collective: ccl.CollBroadcast, Bytes: 4, Ranks: 8, Nodes: n}, "", 0).Rules
		for _, v := range rules {
			require.Equal(t, v.Rule == chosen, v.Chosen, "%d nodes", n)
		}
		if chosen != 1 {
			require.Equal(t, fmt.Sprintf("nodes: 2-3, and the group is on %d", max(1, n)), rules[0].Why)
		}
	}
}

// An explanation holds the shape as the kernel sees it, and what it costs then.
func TestExplainCost(t *testing.T) {
	registry := testRegistry()
	plain := registry["plain"]
	*plain.Kernels[ccl.CollAllReduce] = ccl.Kernel{
		Doc: "for tests", Eager: true, AnyRunner: true, Run: func(*ccl.Call) error { return nil },
		Cost: func(s ccl.Shape) ccl.Cost {
			if s.Eager {
				return ccl.Cost{}
			}
			return ccl.Cost{Steps: 1, Bytes: s.Bytes * s.Ranks}
		},
	}
	s := resolve(t, "version: 1\nalgorithms: {a: {module: plain}}\nrules: [{algorithm: a}]\n", Request{Registry: registry})
	shape := ccl.Shape{Collective: ccl.CollAllReduce, Bytes: 100, Total: 100, Ranks: 4, DType: ccl.Int32, Topology: s.Topology()}
	for limit, want := range map[int]ccl.Cost{0: {Steps: 1, Bytes: 400}, 99: {Steps: 1, Bytes: 400}, 100: {}, 1 << 20: {}} {
		e := s.Explain(shape, "", limit)
		require.NoError(t, e.Err)
		require.Equal(t, "a", e.Choice.Entry)
		require.Equal(t, limit >= 100, e.Shape.Eager)
		require.Equal(t, want, e.Cost, "limit %d", limit)
	}
}

// Explain and Choose agree: the rule that is said to have chosen is the one that
// did, or there is the same error.
func TestExplainAgreesWithChoose(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	for range 100 {
		s := unchecked(t, randomRules(rnd, 1+rnd.IntN(5)))
		for range 50 {
			shape := randomShape(rnd)
			choice, err := s.Choose(shape, "")
			e := s.Explain(shape, "", 0)
			require.Equal(t, err, e.Err)
			chosen := 0
			for _, v := range e.Rules {
				if v.Chosen {
					chosen++
					if err == nil {
						require.Equal(t, choice.Entry, v.Entry)
						require.Equal(t, fmt.Sprintf("%s: rule %d", v.Origin, v.Rule), choice.Why)
					}
				}
				require.NotEmpty(t, v.Why)
			}
			require.LessOrEqual(t, chosen, 1)
			if err == nil {
				require.Equal(t, 1, chosen)
				require.Same(t, choice.Kernel, e.Choice.Kernel)
			}
		}
	}
}
