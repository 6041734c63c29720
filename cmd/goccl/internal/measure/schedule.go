package measure

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// turnTime is the length of a turn if a step takes less: short compared with
// disturbances of a machine, long compared with the cost of a turn.
const turnTime = time.Millisecond

// Ranks learn how to wait from their last waits. If they compute, a turn is long enough that they
// learn it in steps like its own: turnSteps steps, after settleSteps that do not count.
const (
	turnSteps   = 32
	settleSteps = 4
)

// maxTurnCalls bounds the calls of a turn of several steps.
const maxTurnCalls = 1024

// turn is a batch of steps of one subject, of which the first skip do not count; a turn
// without steps is the end.
type turn struct {
	subject int
	steps   int
	skip    int
}

// schedule determines the order of turns, and keeps the measurements. It
// belongs to rank 0.
type schedule struct {
	budget   Budget
	turnTime time.Duration
	calls    int             // of each step
	settles  []bool          // the subjects whose turns begin with settleSteps
	made     []int           // counted steps of each subject
	samples  []samples       // of the counted calls of each
	perStep  []time.Duration // time of a step of each in its last turn, including the work around it
	order    []int           // of the subjects in this round
	at       int             // index of the current turn in order
	warm     bool
	shuffle  *rand.Rand
	last     turn
	began    time.Time // start of the last turn
	start    time.Time // of the first counted turn
}

// samples are the measurements of one subject.
type samples struct {
	times []time.Duration // from the arrival of the last rank
	whole []time.Duration // on the rank whose call took longest
	cpu   time.Duration   // of all ranks, in its turns
	wall  time.Duration   // of these turns
}

func newSchedule(budget Budget, c Case, subjects int) *schedule {
	s := &schedule{
		budget:   budget,
		turnTime: turnTime,
		calls:    c.buckets(),
		settles:  make([]bool, subjects),
		made:     make([]int, subjects),
		samples:  make([]samples, subjects),
		perStep:  make([]time.Duration, subjects),
		warm:     budget.Warmup == 0,
		shuffle:  rand.New(rand.NewPCG(1, 2)),
	}
	if !IsWorkload(c.Collective) { // steps of a workload are turns of their own
		s.turnTime = max(turnTime, turnSteps*c.Compute)
	}
	for i := range subjects {
		s.order = append(s.order, i)
		s.perStep[i] = s.turnTime
	}
	return s
}

// next ends the last turn, and returns the one that follows.
func (s *schedule) next(ctx context.Context) turn {
	now := time.Now()
	if s.last.steps > 0 {
		s.perStep[s.last.subject] = max(1, now.Sub(s.began)/time.Duration(s.last.steps))
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
			steps := s.stepsOf(s.budget.Warmup)
			return turn{subject: k, steps: steps, skip: steps}
		}
		if s.start.IsZero() {
			s.start = now
		}

		if remaining := s.stepsOf(s.budget.MaxCalls) - s.made[k]; remaining > 0 {
			t := turn{subject: k, steps: min(remaining, max(1, int(s.turnTime/s.perStep[k])), max(1, maxTurnCalls/s.calls))}
			s.made[k] += t.steps
			if s.settles[k] {
				t.steps += settleSteps
				t.skip = settleSteps
			}
			return t
		}
	}
}

// stepsOf returns the number of steps that have at least that many calls.
func (s *schedule) stepsOf(calls int) int { return (calls + s.calls - 1) / s.calls }

// enough reports, between two rounds, whether the last round was the last one. Subjects
// share the time, so that all of them run until the end.
func (s *schedule) enough(now time.Time) bool {
	spent, all := !s.start.IsZero() && now.Sub(s.start) >= s.budget.Time*time.Duration(len(s.samples)), true
	for _, steps := range s.made {
		spent = spent && steps >= s.stepsOf(s.budget.MinCalls)
		all = all && steps >= s.stepsOf(s.budget.MaxCalls)
	}
	return spent || all
}

// record adds the times of a call: from the arrival of the last rank, and on the rank whose
// call took longest.
func (s *schedule) record(subject int, d, whole time.Duration) {
	of := &s.samples[subject]
	of.times, of.whole = append(of.times, d), append(of.whole, whole)
}

// recordCPU adds the CPU time of all ranks in a turn, and the turn's length.
func (s *schedule) recordCPU(subject int, cpu, wall time.Duration) {
	s.samples[subject].cpu += cpu
	s.samples[subject].wall += wall
}

// times sets what was measured of a subject in its row.
func (s *schedule) times(subject int, row *Row) {
	of := &s.samples[subject]
	if row.Calls = len(of.times); row.Calls == 0 {
		return
	}
	times := slices.Sorted(slices.Values(of.times))
	row.P50, row.P90, row.P99, row.Min = percentile(times, 50), percentile(times, 90), percentile(times, 99), percentile(times, 0)
	row.Whole = percentile(slices.Sorted(slices.Values(of.whole)), 50)
	row.CPU = rounded(of.cpu.Seconds() / max(of.wall, 1).Seconds())
}

// percentile returns the time that p percent of the calls do not exceed, in microseconds.
func percentile(sorted []time.Duration, p int) float64 {
	return float64(sorted[len(sorted)*p/100].Nanoseconds()) / 1e3
}
