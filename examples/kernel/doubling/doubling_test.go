package doubling_test

import (
	"testing"

	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/examples/kernel/doubling"
)

func TestConformance(t *testing.T) { ccltest.Test(t, doubling.Algorithm) }

func FuzzKernels(f *testing.F) { ccltest.Fuzz(f, doubling.Algorithm) }
