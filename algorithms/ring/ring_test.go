package ring_test

import (
	"testing"

	"github.com/goccl/goccl/algorithms/ring"
	"github.com/goccl/goccl/ccl/ccltest"
)

func TestConformance(t *testing.T) { ccltest.Test(t, ring.Algorithm) }

func TestConformanceSmallChunks(t *testing.T) {
	ccltest.Test(t, ring.Algorithm, ccltest.Params("chunk: 64"))
}
