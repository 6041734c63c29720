package ccltest

import (
	"testing"

	"github.com/goccl/goccl/algorithms/ring"
)

func TestRingUnderSeeds(t *testing.T) { Seeds(t, ring.Algorithm) }
