package measure

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// play runs a schedule with contenders of known cost, and returns the turns.
func play(ctx context.Context, s *schedule, cost []time.Duration) (turns []turn) {
	for {
		next := s.next(ctx)
		if next.calls == 0 {
			return turns
		}
		turns = append(turns, next)
		time.Sleep(time.Duration(next.calls) * cost[next.contender])
		for range next.calls {
			if next.counts {
				s.record(next.contender, cost[next.contender])
			}
		}
	}
}

// Every round has one turn of each contender, of about a millisecond, until the time is used
// up.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := []time.Duration{10 * time.Microsecond, 100 * time.Microsecond, 3 * time.Millisecond}
		s := newSchedule(Budget{Time: 100 * time.Millisecond, Warmup: 5, MinCalls: 10, MaxCalls: 1 << 20}, 3)
		start := time.Now()
		turns := play(t.Context(), s, cost)
		warmup := 5 * (cost[0] + cost[1] + cost[2])
		require.InDelta(t, (300*time.Millisecond + warmup).Seconds(), time.Since(start).Seconds(), 0.006, "a round more at most")
		require.Zero(t, len(turns)%3)
		orders := map[[3]int]bool{}
		for i := 0; i < len(turns); i += 3 {
			round := turns[i : i+3]
			calls := [3]int{}
			for _, turn := range round {
				require.Zero(t, calls[turn.contender], "twice in a round")
				calls[turn.contender] = turn.calls
				require.Equal(t, i > 0, turn.counts)
			}
			orders[[3]int{round[0].contender, round[1].contender, round[2].contender}] = true
			if i > 0 {
				require.Equal(t, [3]int{100, 10, 1}, calls)
			} else {
				require.Equal(t, [3]int{5, 5, 5}, calls)
			}
		}
		require.Len(t, orders, 6, "in all orders")
		calls, p50, p99, least := s.times(1)
		require.Equal(t, 10*(len(turns)/3-1), calls)
		require.Equal(t, [3]float64{100, 100, 100}, [3]float64{p50, p99, least})
	})
}

// The minimum of calls is made even without time left; the maximum is never exceeded.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := []time.Duration{time.Second, time.Microsecond}
		s := newSchedule(Budget{Time: time.Nanosecond, MinCalls: 7, MaxCalls: 2500}, 2)
		play(t.Context(), s, cost)
		require.Equal(t, []int{7, 2500}, s.made, "the fast one had two full turns and a half")

		s = newSchedule(Budget{Time: time.Hour, MinCalls: 1, MaxCalls: 9}, 2)
		play(t.Context(), s, cost)
		require.Equal(t, []int{9, 9}, s.made)
	})
}

// An interrupted schedule ends before the next turn.
func TestScheduleInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newSchedule(DefaultBudget, 2)
	require.NotZero(t, s.next(ctx).calls)
	cancel()
	require.Zero(t, s.next(ctx).calls)
}

// Half of the calls take at most the median, 99 % at most the percentile.
func TestTimes(t *testing.T) {
	s := newSchedule(DefaultBudget, 2)
	for i := range 200 {
		s.record(0, time.Duration((i*77)%200+1)*time.Microsecond)
	}
	calls, p50, p99, least := s.times(0)
	require.Equal(t, 200, calls)
	require.Equal(t, [3]float64{101, 199, 1}, [3]float64{p50, p99, least})
	calls, p50, p99, least = s.times(1)
	require.Zero(t, calls)
	require.Equal(t, [3]float64{}, [3]float64{p50, p99, least})
	s.record(1, 1500)
	_, p50, p99, least = s.times(1)
	require.Equal(t, [3]float64{1.5, 1.5, 1.5}, [3]float64{p50, p99, least})
}
