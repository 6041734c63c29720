package topology_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/topology"
)

// The names of kinds and the default are part of the format of ccl.yaml.
func TestKindNames(t *testing.T) {
	want := []string{"ring_1d", "torus_2d", "mesh_2d_no_wrap"}
	kinds := topology.Kinds()
	require.Len(t, kinds, len(want))
	for i, k := range kinds {
		require.Equal(t, want[i], k.String())
		parsed, err := topology.ParseKind(want[i])
		require.NoError(t, err)
		require.Equal(t, k, parsed)
	}
	require.Equal(t, topology.Kind(0), topology.Ring1D, "the zero value is the default")
	require.Equal(t, "Kind(3)", topology.Kind(3).String())
}

func TestKindsBelongsToTheCaller(t *testing.T) {
	topology.Kinds()[0] = topology.Mesh2DNoWrap
	require.Equal(t, topology.Ring1D, topology.Kinds()[0])
}

func TestParseKindSuggestsTheNearestName(t *testing.T) {
	for name, near := range map[string]string{
		"ring":             "ring_1d",
		"RING_1D":          "ring_1d",
		"ring-1d":          "ring_1d",
		"ring_2d":          "ring_1d",
		"torus":            "torus_2d",
		"torus2d":          "torus_2d",
		"torsu_2d":         "torus_2d",
		" torus_2d":        "torus_2d",
		"mesh":             "mesh_2d_no_wrap",
		"mesh_2d":          "mesh_2d_no_wrap",
		"mesh_2d_wrap":     "mesh_2d_no_wrap",
		"mesh2dnowrap":     "mesh_2d_no_wrap",
		"mesh_2d_no_wrapp": "mesh_2d_no_wrap",
		"2d":               "torus_2d", // as near to mesh_2d_no_wrap: the first kind counts
	} {
		_, err := topology.ParseKind(name)
		require.ErrorContains(t, err, "did you mean "+near+"?", "name %q", name)
	}
}

func TestParseKindListsTheKnownNames(t *testing.T) {
	for _, name := range []string{"", "hypercube", "x", "größe", "\xff", "ring"} {
		_, err := topology.ParseKind(name)
		var unknown *topology.KindError
		require.ErrorAs(t, err, &unknown, "name %q", name)
		require.Equal(t, name, unknown.Name)
		require.ErrorContains(t, err, "use one of ring_1d, torus_2d, mesh_2d_no_wrap")
	}
	for _, name := range []string{"", "x", "fat_tree"} {
		_, err := topology.ParseKind(name)
		require.NotContains(t, err.Error(), "did you mean", "nothing resembles %q", name)
	}
}
