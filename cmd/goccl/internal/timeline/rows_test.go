package timeline

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/internal/flight"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// job returns a job of two ranks: calls 2 and 5 of rank 0 have times, none of rank 1.
func job() *inspect.Records {
	calls := func(timed bool, states ...flight.State) (all []flight.Call) {
		for i, s := range states {
			c := flight.Call{Number: uint64(i + 1), Collective: "all_reduce", Type: "int8", Count: 1, Label: `"<&>"`, State: s}
			switch {
			case timed && c.Number == 2:
				c.Begun, c.Ended = at(0), at(20)
			case timed && c.Number == 5:
				c.Begun = at(50)
			}
			all = append(all, c)
		}
		return all
	}
	done, begun, failed := flight.StateDone, flight.StateBegun, flight.StateFailed
	rank := func(number int, calls []flight.Call) flight.Rank {
		return flight.Rank{Rank: number, Groups: []flight.GroupCalls{{ID: "0", Rank: number, Size: 2, Calls: calls}}}
	}
	r := rank(0, calls(true, done, done, done, done, begun))
	r.Messages = []flight.Message{{Number: 1, Kind: "send", Type: "int8", State: done, Begun: at(90), Ended: at(100)}}
	return &inspect.Records{Name: "job", Size: 2, Ranks: []flight.Rank{r, rank(1, calls(false, done, done, failed))}}
}

// Calls without times stand between those of their rank that have times, or a step each.
func TestPlaces(t *testing.T) {
	all, end := rows(job())
	step := time.Millisecond // a hundredth of 100 ms
	require.Equal(t, 100*time.Millisecond+step, end)
	var spans [][2]time.Duration
	for _, s := range all[0].spans {
		spans = append(spans, [2]time.Duration{s.from, s.to})
	}
	ms := time.Millisecond
	require.Equal(t, [][2]time.Duration{{0, step}, {step, step + 20*ms}, {21 * ms, 36 * ms}, {36 * ms, 51 * ms}, {51 * ms, end}}, spans)
	require.Equal(t, step, all[1].spans[0].from)
	require.Equal(t, 3*step, all[1].spans[2].from)
	require.Equal(t, "messages", all[2].group)
}

// The trace has an event for each call, which says whether its place comes from its times.
func TestTrace(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Trace(&b, job()))
	var trace struct {
		TraceEvents []event
		OtherData   map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(b.String()), &trace))
	require.Contains(t, trace.OtherData["legend"], "placed by its number")
	calls, timed := 0, 0
	for _, e := range trace.TraceEvents {
		if e.Phase == "X" {
			calls++
			require.GreaterOrEqual(t, e.TS, 0.0)
			require.GreaterOrEqual(t, *e.Dur, 0.0)
			if e.Args["timed"] == true {
				timed++
			}
		}
	}
	require.Equal(t, []int{9, 3}, []int{calls, timed})
}
