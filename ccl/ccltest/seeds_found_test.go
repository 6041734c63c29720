//go:build interleave

package ccltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// Seeds find a kernel that some order of steps breaks, on every machine.
func TestMutantsUnderSeeds(t *testing.T) {
	for name, m := range map[string]struct {
		coll   ccl.Collective
		kernel *ccl.Kernel
		want   string
	}{
		"ranks do not wait for the root":      {ccl.CollBroadcast, forgetful(), "instead of"},
		"works out of place only":             {ccl.CollAllReduce, outOfPlace(), "instead of"},
		"writes to gaps":                      {ccl.CollAllGather, gapWriter(), "in a gap between blocks, was written"},
		"both ranks send before they receive": {ccl.CollAllReduce, doublingReduceKernel(bothSend), "waited for rank"},
	} {
		t.Run(name, func(t *testing.T) {
			err := subjectOf(m.coll, m.kernel).findSeed(t)
			require.ErrorContains(t, err, m.want)
			require.ErrorContains(t, err, "\nagain: go test -tags interleave -run '^TestMutantsUnderSeeds$/")
		})
	}
}

// forgetful reads what the root has written, and forgets to wait for it.
func forgetful() *ccl.Kernel {
	var board blackboard
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Rank() == c.Root() {
			board.write(c.Out().Bytes())
			return nil
		}
		board.read(c.Out().Bytes())
		return nil
	}
	return k
}
