package ccl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// The table of collectives says what their buffers hold.
func TestContents(t *testing.T) {
	type row struct {
		in, out         ccl.Contents
		fromRoot, scans bool
	}
	got := map[ccl.Collective]row{}
	for _, c := range append(ccl.Collectives(), ccl.CollBarrier) {
		got[c] = row{c.Input(), c.Output(), c.FromRoot(), c.Scans()}
	}
	require.Equal(t, map[ccl.Collective]row{
		ccl.CollBarrier:       {},
		ccl.CollAllReduce:     {},
		ccl.CollReduce:        {},
		ccl.CollReduceScatter: {in: ccl.RankBlocks, out: ccl.RankBlock},
		ccl.CollAllGather:     {in: ccl.RankBlock, out: ccl.RankBlocks},
		ccl.CollBroadcast:     {fromRoot: true},
		ccl.CollGather:        {in: ccl.RankBlock, out: ccl.RankBlocks},
		ccl.CollScatter:       {in: ccl.RankBlocks, out: ccl.RankBlock, fromRoot: true},
		ccl.CollAllToAll:      {in: ccl.RankBlocks, out: ccl.RankBlocks},
		ccl.CollScan:          {scans: true},
		ccl.CollExScan:        {scans: true},
	}, got)
}
