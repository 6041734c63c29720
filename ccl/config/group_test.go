package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// If the configured algorithm supports only the group of all ranks, a subgroup uses an entry that
// supports it, and its settings give the reason.
func TestSettingsOfGroupWithoutItsAlgorithm(t *testing.T) {
	const entries = `version: 1
algorithms:
  torus: {module: plain, topology: torus_2d}
  sized: {module: plain, world_size: 4}
  plain: {module: plain}
topology: {kind: torus_2d, count: 4}
`
	shape := ccl.Shape{Collective: ccl.CollAllReduce, Ranks: 2, Bytes: 4, Total: 4, DType: ccl.Float32}
	const torus = "auto, since torus is for the topology torus_2d (ccl.yaml:3), but here it is ring_1d (default)"
	const sized = "auto, since sized is for a world size of 4 (ccl.yaml:4), but here it is 2 (a group)"
	for _, c := range []struct{ text, option, entry, why, origin string }{
		{"defaults: {algorithm: torus}\n", "", "plain", "ccl.yaml:5: rule 1 (" + torus + ")", torus},
		{"defaults: {algorithm: sized}\n", "", "plain", "ccl.yaml:5: rule 1 (" + sized + ")", sized},
		{"rules: [{algorithm: plain}]\n", "sized", "plain", "ccl.yaml:7: rule 1 (" + sized + ")", sized},
		{"defaults: {algorithm: plain}\n", "", "plain", "ccl.yaml:7: defaults.algorithm", "ccl.yaml:7"},
	} {
		whole := resolve(t, entries+c.text, Request{Ranks: 4, Algorithm: c.option})
		s, err := whole.ForGroup(2, "a group")
		require.NoError(t, err)
		choice, err := s.Choose(shape, "")
		require.NoError(t, err)
		require.Equal(t, c.entry, choice.Entry)
		require.Equal(t, c.why, choice.Why)
		for _, v := range s.(*Settings).Values() {
			if v.Key == "defaults.algorithm" {
				require.Equal(t, c.origin, v.Origin)
			}
		}
		again, err := s.ForGroup(2, "a group of that")
		require.NoError(t, err)
		require.Equal(t, s.Agreement(), again.Agreement())
	}

	whole := resolve(t, "version: 1\nalgorithms:\n  sized: {module: plain, world_size: 4}\ndefaults: {algorithm: sized}\n", Request{Ranks: 4})
	_, err := whole.ForGroup(2, "a group")
	require.EqualError(t, err, "ccl.yaml:4:23: defaults.algorithm: sized is for a world size of 4 (ccl.yaml:3), but here it is 2 (a group); "+
		"add an entry that supports groups of any size, such as direct: {module: direct}")
}

// A subgroup has two levels or one for itself, whatever its parent has: rules see the nodes of the call's group.
func TestNodesOfGroup(t *testing.T) {
	whole := resolve(t, "version: 1\nalgorithms: {two: {module: plain}, one: {module: plain}}\nrules: [{nodes: 2-, algorithm: two}, {algorithm: one}]\n", Request{Ranks: 8})
	s, err := whole.ForGroup(4, "a group")
	require.NoError(t, err)
	for nodes, entry := range []string{"one", "one", "two", "two"} {
		for _, selector := range []ccl.Selector{whole, s} {
			choice, err := selector.Choose(ccl.Shape{Collective: ccl.CollAllReduce, Ranks: 4, Nodes: nodes, Bytes: 4, Total: 4, DType: ccl.Float32}, "")
			require.NoError(t, err)
			require.Equal(t, entry, choice.Entry)
		}
	}
}
