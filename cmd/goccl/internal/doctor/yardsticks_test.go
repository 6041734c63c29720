package doctor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// The yardsticks of this machine are measured without a problem.
func TestYardsticks(t *testing.T) {
	results, findings := Yardsticks(t.Context())
	require.Len(t, results, 2)
	require.Zero(t, Count(findings, Problem), "%+v", findings)
	var names []string
	for _, f := range findings {
		names = append(names, f.Name)
	}
	require.Equal(t, []string{"goroutines", "core to core", "barrier", "copies in cache", "copies in memory"}, names)
	require.Regexp(t, `^64\.0 KiB of each of 2 ranks: own \d+(\.\d+)? GB/s, peer's \d+(\.\d+)? GB/s per core$`, findings[3].Says)
}

// If the ranks cannot make a call, here because the context has ended, that is the one problem.
func TestMeasuringFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results, findings := Yardsticks(ctx)
	require.Empty(t, results)
	require.Len(t, findings, 1)
	require.Equal(t, Problem, findings[0].Verdict)
}

// A note if other programs had the cores meanwhile, a problem if elements are wrong.
func TestWorks(t *testing.T) {
	r := measure.Result{Case: allReduce(1024), Rows: []measure.Row{{Library: measure.Library, Entry: "direct", Calls: 1, P50: 2, XPeerCopy: 1.5}}}
	f := works(r)
	require.Equal(t, OK, f.Verdict)
	require.Equal(t, "all_reduce of float32 by sum, in place, 2 ranks of 1.0 KiB: 2.00 us, 1.5 times a peer copy, results correct", f.Says)
	r.Company = 1 // cores that other programs used
	require.Equal(t, Note, works(r).Verdict)
	r.Rows[0].Errors = 3
	require.Equal(t, Problem, works(r).Verdict)
	require.Contains(t, works(r).Says, "3 elements of all_reduce of float32 by sum, in place, 2 ranks are wrong (direct)")
}
