package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// A variant is an entry of its own, with the values of the other entry but for those that it is
// given; the configuration that it was made of is unchanged.
func TestWithVariant(t *testing.T) {
	c, err := Parse("ccl.yaml", []byte("version: 1\nalgorithms: {fast: {module: tree, params: {kind: kary, arity: 3, chunk: 8KiB}}}\ndefaults: {algorithm: fast}\n"))
	require.NoError(t, err)
	with, err := c.WithVariant("fast arity=1", "fast", "arity: 1\n")
	require.NoError(t, err)
	require.Equal(t, []string{"fast"}, c.Entries())
	require.Equal(t, []string{"fast", "fast arity=1"}, with.Entries())
	s, err := with.Resolve(Request{Ranks: 2, Algorithm: "fast arity=1"})
	require.NoError(t, err)
	values := map[string]string{}
	for _, v := range s.Values() {
		values[v.Key] = v.Value
	}
	require.Equal(t, "3", values["algorithms.fast.params.arity"])
	require.Equal(t, "1", values["algorithms.fast arity=1.params.arity"])
	require.Equal(t, "8KiB", values["algorithms.fast arity=1.params.chunk"])
	choice, err := s.Choose(ccl.Shape{Collective: ccl.CollAllReduce, Ranks: 2, Bytes: 4, Total: 4, DType: ccl.Float32}, "fast arity=1")
	require.NoError(t, err)
	require.Equal(t, "fast arity=1", choice.Entry)

	_, err = c.WithVariant("x", "fats", "arity: 1\n")
	require.ErrorContains(t, err, "did you mean fast?")
	_, err = c.WithVariant("x", "fast", "arity: [\n")
	require.Error(t, err)
	for params, says := range map[string]string{"arty: 1\n": "did you mean arity?", "arity: one\n": "arity", "arity: 0\n": "arity"} {
		with, err = c.WithVariant("x", "fast", params)
		require.NoError(t, err)
		_, err = with.Resolve(Request{Ranks: 2})
		require.ErrorContains(t, err, says)
	}
}

// Another topology replaces the file's, with its count.
func TestWithTopology(t *testing.T) {
	c, err := Parse("ccl.yaml", []byte("version: 1\nalgorithms: {tree: {module: tree}}\ndefaults: {algorithm: tree}\ntopology: {kind: torus_2d, count: 9}\n"))
	require.NoError(t, err)
	for _, m := range []struct {
		kind       topology.Kind
		w, h, size int
		says       string
	}{
		{topology.Ring1D, 0, 0, 5, ""},
		{topology.Torus2D, 0, 0, 4, ""},
		{topology.Torus2D, 3, 2, 6, ""},
		{topology.Torus2D, 0, 0, 6, "torus_2d"},
		{topology.Torus2D, 3, 2, 5, "torus_2d"},
	} {
		s, err := c.WithTopology(m.kind, m.w, m.h).Resolve(Request{Ranks: m.size})
		if m.says != "" {
			require.ErrorContains(t, err, m.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, m.kind, s.Topology().Kind())
	}
	_, err = c.Resolve(Request{Ranks: 5})
	require.Error(t, err, "the file's topology is unchanged")
}
