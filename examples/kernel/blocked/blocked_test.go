package blocked_test

import (
	"testing"

	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/examples/kernel/blocked"
)

func TestConformance(t *testing.T) { ccltest.Test(t, blocked.Algorithm, ccltest.RankOrdered()) }

// Small blocks take every way through the loop.
func TestConformanceSmallBlocks(t *testing.T) {
	ccltest.Test(t, blocked.Algorithm, ccltest.RankOrdered(), ccltest.Params("block: 64"))
}

func FuzzKernels(f *testing.F) { ccltest.Fuzz(f, blocked.Algorithm, ccltest.RankOrdered()) }
