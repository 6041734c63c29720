package direct_test

import (
	"testing"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/ccl/ccltest"
)

func TestConformance(t *testing.T) { ccltest.Test(t, direct.Algorithm, ccltest.RankOrdered()) }
