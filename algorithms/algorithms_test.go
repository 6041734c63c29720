package algorithms_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
)

// Every folder beside this file, except internal, is an algorithm of that name, and one
// import registers them all.
func TestAllAreRegistered(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	var folders []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != "internal" {
			folders = append(folders, e.Name())
		}
	}
	require.Contains(t, folders, "direct")
	require.Equal(t, folders, slices.Sorted(maps.Keys(ccl.DefaultRegistry())))
}
