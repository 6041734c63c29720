package timeline

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/internal/flight"
)

// training returns a job of two ranks that has ended steps 1 and 2 and is in step 3. In each step, of 100 ms,
// bucket 0 begins at 30 ms on rank 0 and at 50 ms on rank 1, and ends at 60; bucket 1 runs from 60 to 90; both
// ranks wait from 70 on. Before 10 ms rank 0 is in a part of its own, of the first group.
func training() *inspect.Records {
	j := &inspect.Records{Name: "job", Size: 2, Written: at(250)}
	for rank := range 2 {
		r := flight.Rank{Rank: rank, Groups: []flight.GroupCalls{
			{ID: "first", Rank: rank, Size: 2, Calls: []flight.Call{{Number: 1, Collective: "barrier", State: flight.StateDone}}},
			{ID: "ddp", Name: "of ddp", Rank: rank, Size: 2},
		}}
		mark := func(group, label string, step, ms int) {
			r.Marks = append(r.Marks, flight.Mark{Number: uint64(len(r.Marks) + 1), Group: group, Step: step, Label: label, At: at(ms)})
		}
		calls := &r.Groups[1].Calls
		call := func(bucket, from, to int) {
			c := flight.Call{Number: uint64(len(*calls) + 1), Collective: "all_reduce", Type: "float32", Count: 1 << 20,
				Label: fmt.Sprint("bucket ", bucket), State: flight.StateDone, Begun: at(from), Ended: at(to)}
			if to > 250 {
				c.State, c.Ended = flight.StateBegun, time.Time{}
			}
			*calls = append(*calls, c)
		}
		for step := 1; step <= 3; step++ {
			start := 100 * (step - 1)
			mark("ddp", "compute", step, start)
			if rank == 0 {
				mark("first", "data <1>", 0, start+5)
				mark("ddp", "compute", step, start+10)
			}
			if step == 3 && rank == 1 {
				break // it has not come to bucket 0
			}
			mark("ddp", "backward", step, start+20)
			call(0, start+30+20*rank, start+60)
			if step < 3 {
				call(1, start+60, start+90)
				mark("ddp", "wait", step, start+70)
			}
		}
		j.Ranks = append(j.Ranks, r)
	}
	return j
}

func found(t *testing.T, j *inspect.Records) *step {
	t.Helper()
	s, err := findStep(j)
	require.NoError(t, err)
	return s
}

const ms = time.Millisecond

// The last step that all ranks have ended has each rank's parts, the wait for the rank that came last, and the
// share of communication outside of waits.
func TestStep(t *testing.T) {
	s := found(t, training())
	require.Equal(t, 2, s.number)
	require.Equal(t, 100*ms, s.length)
	r := s.ranks[0]
	require.Equal(t, []part{{"compute", 0, 5 * ms}, {"data <1>", 5 * ms, 10 * ms}, {"compute", 10 * ms, 20 * ms}, {"backward", 20 * ms, 70 * ms}, {"wait", 70 * ms, 100 * ms}}, r.parts)
	require.Len(t, r.lanes, 1, "the barrier has no times")
	calls := r.lanes[0].calls
	require.Len(t, calls, 2)
	require.Equal(t, []any{"bucket 0", 30 * ms, 50 * ms, 60 * ms}, []any{calls[0].name, calls[0].from, calls[0].all, calls[0].to})
	require.Contains(t, calls[0].text, "; 30ms, of which it waited 20ms for rank 1")
	require.Equal(t, []any{"bucket 1", 60 * ms, 60 * ms, 90 * ms}, []any{calls[1].name, calls[1].from, calls[1].all, calls[1].to})
	require.InDelta(t, 1-20.0/60, r.hidden, 1e-9)
	late := s.ranks[1].lanes[0].calls[0]
	require.Equal(t, late.from, late.all, "it came last")
	require.InDelta(t, 0.5, s.ranks[1].hidden, 1e-9)
}

// A job in its first step, or in one that has failed, has that.
func TestStepThatHasNotEnded(t *testing.T) {
	j := training()
	calls := j.Ranks[0].Groups[1].Calls
	calls[len(calls)-1].State = flight.StateFailed
	calls[len(calls)-1].Ended = at(240)
	s := found(t, j)
	require.Equal(t, []any{3, 50 * ms}, []any{s.number, s.length})
	last := s.ranks[0].lanes[0].calls[0]
	require.True(t, last.failed)
	require.Equal(t, []time.Duration{30 * ms, 40 * ms, 40 * ms}, []time.Duration{last.from, last.all, last.to})
	require.Contains(t, last.text, "waited 10ms for rank 1", "which has not come")
	var b strings.Builder
	require.NoError(t, StepSVG(&b, j))
	require.Contains(t, b.String(), "50ms; 100 % of the communication", "rank 1 has made no call")
	require.NotContains(t, b.String(), ">0 % hidden")
	require.Contains(t, b.String(), "has failed")

	for i := range j.Ranks {
		j.Ranks[i].Marks = j.Ranks[i].Marks[:1+i]
		j.Ranks[i].Groups[1].Calls = j.Ranks[i].Groups[1].Calls[:1]
		j.Ranks[i].Groups[1].Calls[0].State = flight.StateInside
	}
	j.Written = at(80)
	s = found(t, j)
	require.Equal(t, []any{1, 80 * ms}, []any{s.number, s.length})
	require.True(t, s.ranks[1].lanes[0].calls[0].opened)
	require.Equal(t, 80*ms, s.ranks[1].lanes[0].calls[0].to)
}

// A step whose begin is overwritten on a rank is not that rank's, and one without marks is an error.
func TestStepThatIsGone(t *testing.T) {
	j := training()
	marks := j.Ranks[1].Marks
	j.Ranks[1].Marks = marks[len(marks)-2:] // "wait" of step 2, and step 3
	s := found(t, j)
	require.Equal(t, 3, s.number, "the only step of rank 1")
	j.Ranks[1].Marks = nil
	s = found(t, j)
	require.Equal(t, 2, s.number)
	require.True(t, s.ranks[0].found)
	require.False(t, s.ranks[1].found)
	var b strings.Builder
	require.NoError(t, StepSVG(&b, j))
	require.Contains(t, b.String(), "its records of this step are gone")
	_, err := findStep(job())
	require.ErrorContains(t, err, "no rank has marked a step")
	require.ErrorContains(t, StepTrace(&b, job()), "no rank has marked a step")
}

func TestStepSVG(t *testing.T) {
	var b strings.Builder
	require.NoError(t, StepSVG(&b, training()))
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"step 2 of job job, 2 ranks", "100ms; 58 % of the communication", ">bucket 0<", ">backward<", "data &lt;1&gt;", "67 % hidden", "50 % hidden"} {
		require.Contains(t, b.String(), text)
	}
	require.NotContains(t, b.String(), "has not ended")
}

// The trace has the parts of a call inside of it.
func TestStepTrace(t *testing.T) {
	var b strings.Builder
	require.NoError(t, StepTrace(&b, training()))
	var trace struct{ TraceEvents []event }
	require.NoError(t, json.Unmarshal([]byte(b.String()), &trace))
	var texts []string
	for _, e := range trace.TraceEvents {
		if e.Phase == "X" && e.PID == 0 {
			texts = append(texts, fmt.Sprintf("%d %s %v+%v", e.TID, e.Name, e.TS/1000, *e.Dur/1000))
		}
	}
	require.Equal(t, []string{
		"0 compute 0+5", "0 data <1> 5+5", "0 compute 10+10", "0 backward 20+50", "0 wait 70+30",
		"1 bucket 0 30+30", "1 waits for the last rank 30+20", "1 transfer 50+10",
		"1 bucket 1 60+30", "1 transfer 60+30",
	}, texts)
}
