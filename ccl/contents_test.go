package ccl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// The table of collectives says what their buffers hold.
func TestContents(t *testing.T) {
	got := map[ccl.Collective]ccl.Traits{}
	for _, c := range append(ccl.Collectives(), ccl.CollBarrier) {
		got[c] = c.Traits()
	}
	require.Equal(t, map[ccl.Collective]ccl.Traits{
		ccl.CollBarrier:       {},
		ccl.CollAllReduce:     {Reduces: true},
		ccl.CollReduce:        {Reduces: true, Rooted: true},
		ccl.CollReduceScatter: {Reduces: true, Input: ccl.RankBlocks, Output: ccl.RankBlock},
		ccl.CollAllGather:     {Input: ccl.RankBlock, Output: ccl.RankBlocks},
		ccl.CollBroadcast:     {Rooted: true, FromRoot: true},
		ccl.CollGather:        {Rooted: true, Input: ccl.RankBlock, Output: ccl.RankBlocks},
		ccl.CollScatter:       {Input: ccl.RankBlocks, Output: ccl.RankBlock, Rooted: true, FromRoot: true},
		ccl.CollAllToAll:      {Input: ccl.RankBlocks, Output: ccl.RankBlocks},
		ccl.CollScan:          {Reduces: true, Scans: true},
		ccl.CollExScan:        {Reduces: true, Scans: true},
	}, got)
}
