package doctor

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

func measured(ctx context.Context, root string) (results []measure.Result, findings []Finding) {
	results = Yardsticks(ctx, root, func(f Finding) { findings = append(findings, f) })
	return results, findings
}

// limited returns the root of a machine with plenty of memory, whose control group has a limit of
// which a part is used.
func limited(t *testing.T, limit, used int) string {
	t.Helper()
	return prepared(t, map[string]string{
		"/proc/meminfo":                 "MemAvailable: 1000000000 kB\n",
		"/proc/self/cgroup":             "0::/a\n",
		"/proc/self/mountinfo":          "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/a/memory.max":   fmt.Sprint(limit),
		"/sys/fs/cgroup/memory.current": fmt.Sprint(used),
		"/sys/fs/cgroup/memory.max":     fmt.Sprint(limit),
	})
}

// In a control group the yardsticks take at most half of what the limit leaves, or are not
// measured: whoever exceeds the limit ends a process of the group, which may be a job.
func TestYardsticksInAControlGroup(t *testing.T) {
	for _, c := range []struct {
		free, largest int
		says, do      string
	}{
		{260 << 20, 130 << 20 / 6, "; no longer vectors, since 260.0 MiB of memory are available", "free more than "},
		{20 << 20, 10 << 20 / 6, "; no longer vectors, since 20.0 MiB of memory are available", "free more than "},
		{1 << 20, 0, "not measured: 1.0 MiB of memory are available", "free more than "},
		{0, 0, "not measured: 1 B of memory are available", "free more than "},
		{1 << 40, 64 << 20, "GB/s per core", ""},
	} {
		results, findings := measured(t.Context(), limited(t, 1<<41, 1<<41-c.free))
		require.Zero(t, Count(findings, Problem), "%+v", findings)
		f := findings[len(findings)-1]
		require.Equal(t, "copies in memory", f.Name)
		require.Contains(t, f.Says, c.says)
		require.Contains(t, f.Do, c.do)
		require.Equal(t, c.do != "", f.Verdict == Note)
		if c.largest == 0 {
			require.Len(t, results, 1)
			continue
		}
		require.Len(t, results, 2)
		require.LessOrEqual(t, results[1].Bytes, c.largest)
		require.Greater(t, results[1].Bytes, min(c.largest, 16<<20)/2-1)
	}
}

// The yardsticks of this machine are measured without a problem.
func TestYardsticks(t *testing.T) {
	results, findings := measured(t.Context(), "")
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
	results, findings := measured(ctx, "")
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
	r.OtherLoad = 1 // cores that other programs used
	require.Equal(t, Note, works(r).Verdict)
	r.Rows[0].Errors = 3
	require.Equal(t, Problem, works(r).Verdict)
	require.Contains(t, works(r).Says, "3 elements of all_reduce of float32 by sum, in place, 2 ranks are wrong (direct)")
}
