package measure

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// play runs a schedule with subjects of known cost, and returns the turns.
func play(ctx context.Context, s *schedule, cost []time.Duration) (turns []turn) {
	for {
		next := s.next(ctx)
		if next.steps == 0 {
			return turns
		}
		turns = append(turns, next)
		time.Sleep(time.Duration(next.steps) * cost[next.subject])
		for range (next.steps - next.skip) * s.calls {
			s.record(next.subject, cost[next.subject], 2*cost[next.subject])
		}
	}
}

// Every round has one turn of each subject, of about a millisecond, until the time is used
// up.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := []time.Duration{10 * time.Microsecond, 100 * time.Microsecond, 3 * time.Millisecond}
		s := newSchedule(Budget{Time: 100 * time.Millisecond, Warmup: 5, MinCalls: 10, MaxCalls: 1 << 20}, Case{}, 3)
		start := time.Now()
		turns := play(t.Context(), s, cost)
		warmup := 5 * (cost[0] + cost[1] + cost[2])
		require.InDelta(t, (300*time.Millisecond + warmup).Seconds(), time.Since(start).Seconds(), 0.006, "a round more at most")
		require.Zero(t, len(turns)%3)
		orders := map[[3]int]bool{}
		for i := 0; i < len(turns); i += 3 {
			round := turns[i : i+3]
			steps := [3]int{}
			for _, turn := range round {
				require.Zero(t, steps[turn.subject], "twice in a round")
				steps[turn.subject] = turn.steps
				require.Equal(t, i == 0, turn.skip == turn.steps)
			}
			orders[[3]int{round[0].subject, round[1].subject, round[2].subject}] = true
			if i > 0 {
				require.Equal(t, [3]int{100, 10, 1}, steps)
			} else {
				require.Equal(t, [3]int{5, 5, 5}, steps)
			}
		}
		require.Len(t, orders, 6, "in all orders")
		var row Row
		s.times(1, &row)
		require.Equal(t, Row{Calls: 10 * (len(turns)/3 - 1), P50: 100, P90: 100, P99: 100, Min: 100, Whole: 200}, row)
	})
}

// The minimum of calls is made even without time left; the maximum is never exceeded.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := []time.Duration{time.Second, time.Microsecond}
		s := newSchedule(Budget{Time: time.Nanosecond, MinCalls: 7, MaxCalls: 2500}, Case{}, 2)
		play(t.Context(), s, cost)
		require.Equal(t, []int{7, 2500}, s.made, "the fast one had two full turns and a half")

		s = newSchedule(Budget{Time: time.Hour, MinCalls: 1, MaxCalls: 9}, Case{}, 2)
		play(t.Context(), s, cost)
		require.Equal(t, []int{9, 9}, s.made)
	})
}

// An interrupted schedule ends before the next turn.
func TestScheduleInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newSchedule(DefaultBudget, Case{}, 2)
	require.NotZero(t, s.next(ctx).steps)
	cancel()
	require.Zero(t, s.next(ctx).steps)
}

// Steps of several calls that follow a computation have long turns, of which the first steps do
// not count; budgets are rounded up to whole steps.
func TestComputingTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := []time.Duration{time.Millisecond, 10 * time.Microsecond}
		s := newSchedule(Budget{Time: 300 * time.Millisecond, Warmup: 5, MinCalls: 10, MaxCalls: 1000}, Case{Compute: time.Millisecond, Buckets: 4}, 2)
		s.settles[0] = true
		turns := play(t.Context(), s, cost)
		seen := map[turn]int{}
		for _, turn := range turns {
			seen[turn]++
		}
		require.Equal(t, 1, seen[turn{subject: 0, steps: 2, skip: 2}], "five calls are two steps")
		require.Equal(t, 1, seen[turn{subject: 1, steps: 2, skip: 2}])
		require.Positive(t, seen[turn{subject: 0, steps: turnSteps + settleSteps, skip: settleSteps}])
		require.Equal(t, 1, seen[turn{subject: 1, steps: 250}], "all calls in the first turn")
		require.Len(t, s.samples[1].times, 1000)
		require.Equal(t, 4*s.made[0], len(s.samples[0].times))

		s = newSchedule(Budget{Time: 1, MinCalls: 5, MaxCalls: 5}, Case{Buckets: 4}, 1)
		play(t.Context(), s, cost)
		require.Len(t, s.samples[0].times, 8)

		s = newSchedule(Budget{Time: 1, MinCalls: 1, MaxCalls: 3 * maxTurnCalls}, Case{Compute: time.Second}, 2)
		for range 4 {
			require.LessOrEqual(t, s.next(t.Context()).steps, maxTurnCalls, "the board has no room for more")
		}
	})
}

// Half of the calls take at most the median, 90 and 99 % at most the percentiles.
func TestTimes(t *testing.T) {
	s := newSchedule(DefaultBudget, Case{}, 2)
	for i := range 200 {
		d := time.Duration((i*77)%200+1) * time.Microsecond
		s.record(0, d, d+time.Millisecond)
	}
	s.recordCPU(0, 3*time.Second, 2*time.Second)
	s.recordCPU(0, 2*time.Second, 2*time.Second)
	row := Row{Entry: "a"}
	s.times(0, &row)
	require.Equal(t, Row{Entry: "a", Calls: 200, P50: 101, P90: 181, P99: 199, Min: 1, Whole: 1101, CPU: 1.25}, row)
	row = Row{}
	s.times(1, &row)
	require.Equal(t, Row{}, row)
	s.record(1, 1500, 1600)
	s.times(1, &row)
	require.Equal(t, Row{Calls: 1, P50: 1.5, P90: 1.5, P99: 1.5, Min: 1.5, Whole: 1.6}, row)
}
