package direct_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Reductions give the bits of the sequential reduction in rank order.
func TestConformance(t *testing.T) { ccltest.Test(t, direct.Algorithm, ccltest.RankOrdered()) }

func FuzzKernels(f *testing.F) { ccltest.Fuzz(f, direct.Algorithm, ccltest.RankOrdered()) }

func TestRegistered(t *testing.T) {
	got, ok := ccl.DefaultRegistry()["direct"]
	require.True(t, ok)
	require.Same(t, direct.Algorithm, got)
}
