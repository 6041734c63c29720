package ccl_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/flight"
)

// withoutTimes returns counters whose times have been checked and are zero.
func withoutTimes(t *testing.T, counters []flight.Counter) []flight.Counter {
	for i := range counters {
		c := &counters[i]
		require.True(t, 0 <= c.Waiting && c.Waiting <= c.Duration && 0 < c.Duration && c.Duration < time.Minute, "%+v", c)
		c.Waiting, c.Duration = 0, 0
	}
	return counters
}

// Counters have each call of the program once, whichever way it took, by group and collective.
func TestMetrics(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		dir := t.TempDir()
		g := join(t, connect, settings(t, 3, patient, nil), ccl.WithMetrics(), ccl.WithFlight(dir))
		require.NoError(t, errors.Join(each(3, func(r int) error {
			for range 4 {
				if err := sum(g[r], 5); err != nil {
					return err
				}
			}
			if err := sum(g[r], 100, ccl.WithAlgorithm("ring")); err != nil {
				return err
			}
			var w ccl.Work
			if err := ccl.Broadcast(bg, g[r], make([]int8, 7), 1, ccl.WithWork(&w)); err != nil {
				return err
			}
			if err := w.Wait(bg); err != nil {
				return err
			}
			var whole []int16
			var counts []int
			if r == 2 {
				whole, counts = make([]int16, 6), []int{1, 2, 3}
			}
			if err := ccl.GatherV(bg, g[r], make([]int16, r+1), whole, counts, nil, 2); err != nil {
				return err
			}
			if err := sum(g[r], 5, ccl.WithAlgorithm("none")); err == nil { // rejected by all
				return errors.New("an unknown algorithm")
			}
			part, err := g[r].Split(bg, r/2, r)
			if err != nil {
				return err
			}
			return errors.Join(part.Barrier(bg), g[r].WriteFlight(), part.Close())
		})...))

		documents := load(t, dir)
		require.Len(t, documents, 3)
		for r, d := range documents {
			require.Len(t, d.Ranks[r].Groups, 2)
			require.Equal(t, []flight.Counter{
				{Collective: "all_reduce", Calls: 6, Failures: 1, Bytes: 4*20 + 400},
				{Collective: "broadcast", Calls: 1, Bytes: 7},
				{Collective: "gather", Calls: 1, Bytes: uint64([]int{2, 4, 12}[r])},
				{Collective: "split", Calls: 1},
			}, withoutTimes(t, d.Ranks[r].Groups[0].Counters))
			require.Equal(t, []flight.Counter{{Collective: "barrier", Calls: 1}}, withoutTimes(t, d.Ranks[r].Groups[1].Counters))
		}
	})
}

// Messages are counted by direction, with their bytes, those that have failed too.
func TestMetricsOfMessages(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := join(t, connect, settings(t, 2, patient, nil), ccl.WithMetrics())
		require.NoError(t, errors.Join(each(2, func(r int) error {
			if r == 0 {
				return errors.Join(ccl.Send(bg, g[0], make([]int32, 5), 1, 7), ccl.Isend(bg, g[0], make([]byte, 3), 1, 8).Wait(bg))
			}
			_, err := ccl.Recv(bg, g[1], make([]int32, 5), 0, 7)
			_, mismatch := ccl.Recv(bg, g[1], make([]byte, 2), 0, 8)
			if mismatch == nil {
				return errors.New("a message of 3 bytes in 2")
			}
			_, _, rest := ccl.RecvBytes(bg, g[1], 0, 8, 100)
			return errors.Join(err, rest)
		})...))
		for r, want := range []map[string]float64{{"messages": 2, "message_failures": 0, "message_bytes": 23}, {"messages": 3, "message_failures": 1, "message_bytes": 23}} {
			all := g[r].Metrics()
			for name, value := range want {
				require.Equal(t, value, all[fmt.Sprintf("goccl_%s_total{rank=\"%d\",group=\"default\",direction=\"%s\"}", name, r, []string{"send", "recv"}[r])], "%v", all)
			}
			require.Zero(t, all[fmt.Sprintf("goccl_calls_total{rank=\"%d\",group=\"default\",collective=\"other\"}", r)])
		}
	})
}

// Without the option nothing is counted.
func TestNoMetrics(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		dir := t.TempDir()
		g := join(t, connect, settings(t, 2, patient, nil), ccl.WithFlight(dir))
		allSum(t, g, 5)
		require.NoError(t, g[0].WriteFlight())
		require.Empty(t, load(t, dir)[0].Ranks[0].Groups[0].Counters)
	})
}

// A rank alone counts its calls, too.
func TestMetricsAlone(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		dir := t.TempDir()
		g := join(t, connect, settings(t, 1, patient, nil), ccl.WithMetrics(), ccl.WithFlight(dir))
		require.NoError(t, sum(g[0], 5))
		require.NoError(t, g[0].WriteFlight())
		require.Equal(t, []flight.Counter{{Collective: "all_reduce", Calls: 1, Bytes: 20}}, withoutTimes(t, load(t, dir)[0].Ranks[0].Groups[0].Counters))
	})
}
