//go:build !race

package measure

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nothing is allocated per call: five thousand more of each contender cost a few
// allocations, such as for what was measured.
func TestCallsDoNotAllocate(t *testing.T) {
	mallocs := func(calls int) int {
		j := job(t, "direct", "ring", Auto)
		j.Budget = Budget{Time: 1, MinCalls: calls, MaxCalls: calls}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := j.Measure(t.Context(), Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, Bytes: 8 << 10, InPlace: true, Consume: true})
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		return int(after.Mallocs - before.Mallocs)
	}
	mallocs(50)
	// An allocation in every call of one contender would make 5000 more. The runtime's
	// own come to some hundred; under the race detector, which makes pools forget, to more,
	// so that this is not for it.
	few, many := mallocs(50), mallocs(5050)
	require.Less(t, many-few, 4000)
}
