package flight

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// training makes the records of ranks that work and then make a call, again and again.
type training struct {
	groups  [][]int // of ranks; every rank makes a call on each of its groups in a step
	work    func(rank, step int) time.Duration
	untimed int  // calls without times after those of a step
	loose   bool // a rank does not wait for those that come later

	step  int
	clock []time.Duration // by rank
	ranks []Rank
}

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func newTraining(ranks int, work func(rank, step int) time.Duration) *training {
	t := &training{work: work, clock: make([]time.Duration, ranks), ranks: make([]Rank, ranks), groups: [][]int{nil}}
	for rank := range ranks {
		t.groups[0] = append(t.groups[0], rank)
		t.ranks[rank].Rank = rank
	}
	return t
}

// run makes steps, of whose calls each rank keeps the last 60 of each group.
func (t *training) run(steps int) {
	for range steps {
		t.step++
		for rank := range t.clock {
			t.clock[rank] += t.work(rank, t.step)
		}
		for id, members := range t.groups {
			t.call(fmt.Sprint(id), members)
		}
	}
}

func (t *training) call(id string, members []int) {
	last := time.Duration(0)
	for _, rank := range members {
		last = max(last, t.clock[rank])
	}
	last += time.Microsecond
	for i, rank := range members {
		r, end := &t.ranks[rank], last
		if t.loose {
			end = t.clock[rank] + time.Nanosecond
		}
		k := 0
		for k < len(r.Groups) && r.Groups[k].ID != id {
			k++
		}
		if k == len(r.Groups) {
			r.Groups = append(r.Groups, GroupCalls{ID: id, Rank: i, Size: len(members)})
		}
		g := &r.Groups[k]
		for n := range 1 + t.untimed {
			c := Call{Number: 1, Collective: "all_reduce", State: StateDone}
			if len(g.Calls) > 0 {
				c.Number = g.Calls[len(g.Calls)-1].Number + 1
			}
			if n == 0 {
				c.Begun, c.Ended = noon.Add(t.clock[rank]), noon.Add(end)
			}
			g.Calls = append(g.Calls, c)
		}
		g.Calls = g.Calls[max(0, len(g.Calls)-LaneRecords):]
		t.clock[rank] = end
	}
}

func (t *training) now() time.Time { return noon.Add(t.clock[0]) }

// seen returns the waiting after so many steps, of which the records are read each second.
func (t *training) seen(steps int) (*Window, Waiting) {
	w := NewWindow()
	for next := t.now(); steps > 0; steps-- {
		t.run(1)
		if !t.now().Before(next) {
			w.Add(t.ranks, t.now())
			next = t.now().Add(time.Second)
		}
	}
	return w, w.Waiting()
}

const ms = time.Millisecond

// slower is a rank with 20 percent more work.
func slower(slow int) func(rank, step int) time.Duration {
	return func(rank, _ int) time.Duration {
		if rank == slow {
			return 120 * ms
		}
		return 100 * ms
	}
}

// jitter adds to each piece of work a pause whose mean is this share of it; pauses of that kind have a long tail.
func jitter(seed uint64, share float64, work func(rank, step int) time.Duration) func(rank, step int) time.Duration {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(rank, step int) time.Duration {
		d := work(rank, step)
		return d + time.Duration(random.ExpFloat64()*share*float64(d))
	}
}

// A rank with 20 percent more work makes each other rank wait a sixth of its time.
func TestWaitingForOne(t *testing.T) {
	_, w := newTraining(4, slower(2)).seen(500)
	require.Equal(t, 2, w.Slow(-1))
	require.InDelta(t, 20./120, w.Of[2].Ratio, 1e-3)
	require.InDelta(t, 1, w.Of[2].Share, 1e-9)
	require.InDelta(t, 60, w.Seconds, 2)
	require.InDelta(t, 500, w.Calls, 10)
	require.Len(t, w.Of, 4)
	require.Zero(t, w.Of[0].Share)
}

// The rank is named although all ranks' work varies; where all are equal, none is. Both from the first second on.
func TestWaitingForNobody(t *testing.T) {
	for seed := range uint64(50) {
		for _, steps := range []int{12, 60, 500} {
			_, w := newTraining(4, jitter(seed, 0.03, slower(-1))).seen(steps)
			require.Equal(t, -1, w.Slow(-1), "seed %d, %d steps: %+v", seed, steps, w)
			if steps >= 60 {
				_, w = newTraining(4, jitter(seed, 0.03, slower(1))).seen(steps)
				require.Equal(t, 1, w.Slow(-1), "seed %d, %d steps: %+v", seed, steps, w)
			}
		}
	}
}

// On a machine that has too much to do, ranks that are equal wait much for each other. None is named.
func TestWaitingByChance(t *testing.T) {
	named := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		_, w := newTraining(4, func(int, int) time.Duration {
			if random.IntN(20) == 0 {
				return 100*ms + time.Duration(random.ExpFloat64()*float64(400*ms))
			}
			return 100 * ms
		}).seen(60)
		if w.Slow(-1) >= 0 {
			named++
		}
	}
	require.LessOrEqual(t, named, 2) // 94 without the rule of chance
}

// One long pause names nobody, however much of the waiting it is. Nor does a rank that is late by little.
func TestWaitingOnce(t *testing.T) {
	_, w := newTraining(4, func(rank, step int) time.Duration {
		if rank == 3 && step == 20 {
			return 900 * ms
		}
		return 100 * ms
	}).seen(60)
	require.Equal(t, -1, w.Slow(-1))
	require.Equal(t, 1., w.Of[3].Share)
	require.Greater(t, w.Of[3].Ratio, 0.1)

	_, w = newTraining(4, func(rank, _ int) time.Duration { return 100*ms + time.Duration(rank)*ms }).seen(60)
	require.Equal(t, -1, w.Slow(-1))
	require.Equal(t, 1., w.Of[3].Share)
}

// Of calls that do not make ranks wait, as a broadcast's root need not, the last one is not to blame.
func TestWaitingWithoutSynchronisation(t *testing.T) {
	job := newTraining(4, slower(0))
	job.loose = true
	_, w := job.seen(100)
	require.Equal(t, -1, w.Slow(-1))
	require.NotZero(t, w.Calls)
	require.Zero(t, w.Of[0].Ratio)
}

// Calls that the rings have lost between two readings, and calls without times, change nothing of the ratio.
func TestWaitingInSamples(t *testing.T) {
	fast := func(rank, _ int) time.Duration { return slower(1)(rank, 0) / 100 }
	_, w := newTraining(4, fast).seen(20000)
	require.Less(t, w.Calls, 25*LaneRecords, "the others were not seen")
	require.InDelta(t, 1./6, w.Of[1].Ratio, 0.01)

	job := newTraining(4, slower(1))
	job.untimed = 4
	_, w = job.seen(200)
	require.InDelta(t, 199, w.Calls, 5)
	require.InDelta(t, 1./6, w.Of[1].Ratio, 0.01)
	require.Equal(t, 1, w.Slow(-1))
}

// Of ranks in groups, the one that the groups wait for is named, although those that wait for it make others wait.
func TestWaitingInGroups(t *testing.T) {
	job := newTraining(8, slower(5))
	job.groups = [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2, 4, 6}, {1, 3, 5, 7}}
	_, w := job.seen(200)
	require.Equal(t, 5, w.Slow(-1))
	require.InDelta(t, 4./7, w.Of[5].Share, 0.01)
	require.InDelta(t, 3./7, w.Of[4].Share, 0.01)
}

// A call counts once, when all have ended it; old ones are forgotten, and with them the rank's name.
func TestWindow(t *testing.T) {
	job := newTraining(2, slower(1))
	job.run(11)
	w := NewWindow()
	last := &job.ranks[0].Groups[0].Calls[10]
	last.State = StateInside
	w.Add(job.ranks, job.now())
	require.Equal(t, 9, w.Waiting().Calls)
	last.State = StateDone
	w.Add(job.ranks, job.now())
	w.Add(job.ranks, job.now())
	require.Equal(t, 10, w.Waiting().Calls)
	require.Equal(t, 1, w.Waiting().Slow(-1))

	job.work = func(rank, _ int) time.Duration { return 100*ms + time.Duration(rank)*4*ms }
	job.run(700)
	w.Add(job.ranks, job.now())
	require.Equal(t, -1, w.Waiting().Slow(-1), "the first ones are older than a minute")
	require.Equal(t, 1, w.Waiting().Slow(1), "it still causes more than half as much")
	job.work = slower(-1)
	job.run(100)
	w.Add(job.ranks, job.now().Add(2*time.Minute))
	require.Zero(t, w.Waiting().Calls)
	require.Equal(t, -1, w.Waiting().Slow(1))
	w.Add(nil, job.now().Add(3*time.Minute))
	require.Empty(t, w.Waiting().Of)
}

// Of ranks that are slow in turn, none is named.
func TestWaitingInTurn(t *testing.T) {
	_, w := newTraining(4, func(rank, step int) time.Duration {
		if step%4 == rank {
			return 150 * ms
		}
		return 100 * ms
	}).seen(200)
	require.Equal(t, -1, w.Slow(-1))
	for rank := range 4 {
		require.InDelta(t, 0.25, w.Of[rank].Share, 0.02)
		require.Greater(t, w.Of[rank].Ratio, 0.08)
	}
}

// The calls of each group stand for its own time, of which more or less was seen.
func TestWaitingOfSums(t *testing.T) {
	w := Window{ranks: []int{0, 1, 2}, sums: []sum{
		{group: "a", calls: 60, seconds: 2, caused: map[int]caused{0: {0.5, 0.01}, 2: {}}},
		{group: "b", calls: 9, seconds: 10, caused: map[int]caused{1: {2, 0.05}}},
		{group: "a", calls: 60, seconds: 3, caused: map[int]caused{0: {1, 0.01}}},
	}}
	all := w.Waiting()
	require.Equal(t, []any{129, 10.}, []any{all.Calls, all.Seconds})
	require.InDelta(t, 0.15, all.Of[0].Ratio, 1e-9)
	require.InDelta(t, 0.1, all.Of[1].Ratio, 1e-9)
	require.InDelta(t, 0.6, all.Of[0].Share, 1e-9)
	require.Zero(t, all.Of[2])
	require.Equal(t, 0, all.Slow(-1))
	require.Equal(t, 0, all.Slow(1), "one that causes more takes the name")
}

// Times that do not grow, of memory that another program has overwritten, give no numbers that are none.
func TestWaitingAtOnce(t *testing.T) {
	calls := func(d time.Duration) (all []Call) {
		for n := range 5 {
			all = append(all, Call{Number: uint64(n + 1), State: StateDone, Begun: noon.Add(d), Ended: noon.Add(d)})
		}
		return all
	}
	w := NewWindow()
	w.Add([]Rank{{Rank: 0, Groups: []GroupCalls{{Calls: calls(0)}}}, {Rank: 1, Groups: []GroupCalls{{Calls: calls(ms)}}}}, noon)
	require.Equal(t, Waiting{Of: map[int]Lateness{0: {}, 1: {}}}, w.Waiting())
}
