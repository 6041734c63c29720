package measure

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// turnTime is the length of a turn if a call takes less: short compared with
// disturbances of a machine, long compared with the cost of a turn.
const turnTime = time.Millisecond

// turn is a batch of calls of one contender; a turn without calls is the end.
type turn struct {
	contender int
	calls     int
	counts    bool // not a warm-up
}

// schedule determines the order of turns, and keeps the measurements. It
// belongs to rank 0.
type schedule struct {
	budget  Budget
	made    []int             // calls of each contender, without its warm-up
	samples [][]time.Duration // times of the counted calls
	perCall []time.Duration   // time of a call of each in its last turn, including the work around it
	order   []int             // of the contenders in this round
	at      int               // index of the current turn in order
	warm    bool
	shuffle *rand.Rand
	last    turn
	began   time.Time // start of the last turn
	start   time.Time // of the first counted turn
}

func newSchedule(budget Budget, contenders int) *schedule {
	s := &schedule{
		budget:  budget,
		made:    make([]int, contenders),
		samples: make([][]time.Duration, contenders),
		perCall: make([]time.Duration, contenders),
		warm:    budget.Warmup == 0,
		shuffle: rand.New(rand.NewPCG(1, 2)),
	}
	for i := range contenders {
		s.order = append(s.order, i)
		s.perCall[i] = turnTime
	}
	return s
}

// next ends the last turn, and returns the one that follows.
func (s *schedule) next(ctx context.Context) turn {
	now := time.Now()
	if s.last.calls > 0 {
		s.perCall[s.last.contender] = max(1, now.Sub(s.began)/time.Duration(s.last.calls))
	}
	s.last, s.began = s.pick(ctx, now), now
	return s.last
}

func (s *schedule) pick(ctx context.Context, now time.Time) turn {
	if ctx.Err() != nil {
		return turn{}
	}
	for {
		if s.at == len(s.order) {
			s.at, s.warm = 0, true
			if s.enough(now) {
				return turn{}
			}
			s.shuffle.Shuffle(len(s.order), func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })
		}
		k := s.order[s.at]
		s.at++
		if !s.warm {
			return turn{contender: k, calls: s.budget.Warmup}
		}
		if s.start.IsZero() {
			s.start = now
		}
		if left := s.budget.MaxCalls - s.made[k]; left > 0 {
			calls := min(left, max(1, int(turnTime/s.perCall[k])))
			s.made[k] += calls
			return turn{contender: k, calls: calls, counts: true}
		}
	}
}

// enough reports, between two rounds, whether the last round was the last one. Contenders
// share the time, so that all of them run until the end.
func (s *schedule) enough(now time.Time) bool {
	spent, all := !s.start.IsZero() && now.Sub(s.start) >= s.budget.Time*time.Duration(len(s.samples)), true
	for _, calls := range s.made {
		spent = spent && calls >= s.budget.MinCalls
		all = all && calls >= s.budget.MaxCalls
	}
	return spent || all
}

// record adds the time of a call.
func (s *schedule) record(contender int, d time.Duration) {
	s.samples[contender] = append(s.samples[contender], d)
}

// times returns the number of a contender's counted calls, and the median, 99th percentile
// and minimum of their times in microseconds.
func (s *schedule) times(contender int) (calls int, p50, p99, least float64) {
	sorted := slices.Sorted(slices.Values(s.samples[contender]))
	n := len(sorted)
	if n == 0 {
		return 0, 0, 0, 0
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return n, us(sorted[n/2]), us(sorted[n*99/100]), us(sorted[0])
}
