package groupsync

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// poller makes waits that poll, by a clock that advances by tick whenever it is read.
type poller struct {
	budget
	tick time.Duration
}

func newPoller(t *testing.T) *poller {
	p := &poller{budget: newBudget(true, nil), tick: time.Microsecond}
	setClock(t, &p.tick)
	return p
}

// setClock replaces the clock by one that advances by tick whenever it is read, and lets no
// goroutine wait for a processor.
func setClock(t *testing.T, tick *time.Duration) {
	now, realClock, realWaiting := time.Hour, clock, countWaiting
	clock = func() time.Duration { now += *tick; return now }
	countWaiting = func(*[3]metrics.Sample) uint64 { return 0 }
	t.Cleanup(func() { clock, countWaiting = realClock, realWaiting })
}

// wait makes a wait that is over after at most that many pauses, and returns whether it has parked
// and after how many pauses.
func (p *poller) wait(most int, wakes bool) (parked bool, pauses int) {
	w := wait{wakes: wakes}
	for w.pauses < most && !w.parked {
		p.spend(&w, nil)
	}
	p.end(&w)
	return w.parked, w.pauses
}

// looks returns the pauses of a poll of that duration: its first look at the clock starts it.
func (p *poller) looks(d time.Duration) int { return lookEvery * (1 + int((d+p.tick-1)/p.tick)) }

const forever = 1 << 30

// A poll ends even if the clock stands still.
func TestPollsEndWithoutAClock(t *testing.T) {
	p := newPoller(t)
	p.tick = 0
	parked, pauses := p.wait(forever, false)
	require.True(t, parked)
	require.Equal(t, (p.mostPauses+lookEvery-1)/lookEvery*lookEvery, pauses)
	require.Zero(t, p.early)
}

// A peer that comes late does not teach a rank to park early.
func TestLateRanksAreWaitedForInFull(t *testing.T) {
	p := newPoller(t)
	for range 10 {
		parked, pauses := p.wait(forever, false)
		require.True(t, parked)
		require.Equal(t, p.looks(p.pollTime), pauses)
	}
	require.GreaterOrEqual(t, p.pollTime, p.wakeTime)
}

// A rank that loses its core while it polls parks early in the next waits, and in twice as many
// each time that it loses the core again. A wait in which it keeps the core resets the count.
func TestLostCoresBackOff(t *testing.T) {
	p := newPoller(t)
	lose := func() {
		p.tick = 2 * timeSlice
		parked, _ := p.wait(forever, false)
		require.True(t, parked)
		p.tick = time.Microsecond
	}

	early := func() (waits int) {
		for {
			if parked, _ := p.wait(p.earlyPauses+1, false); !parked {
				return waits
			}
			waits++
		}
	}

	for want := minEarly; want <= 2*maxEarly; want *= 2 {
		lose()
		for range min(want, maxEarly) {
			parked, pauses := p.wait(forever, false)
			require.True(t, parked)
			require.Equal(t, p.earlyPauses, pauses)
		}
	}
	require.Zero(t, early())
	lose()
	require.Equal(t, minEarly, early())
}

// A rank that has just woken another one polls until that has had time to wake up, even if it has
// lost its core before.
func TestWakersPoll(t *testing.T) {
	p := newPoller(t)
	p.tick = 2 * timeSlice
	p.wait(forever, false)
	p.tick = time.Microsecond
	parked, pauses := p.wait(forever, true)
	require.True(t, parked)
	require.Equal(t, p.looks(p.wakeTime), pauses)
	require.Greater(t, p.wakeTime, earlyTime)
}

// A rank parks early if other goroutines wait for a processor while it polls, but not if one does
// so for a moment: in four times as many waits each time, and half as many after a wait that kept
// the core.
func TestCrowdedProcessors(t *testing.T) {
	p := newPoller(t)
	counts := 0
	countWaiting = func(*[3]metrics.Sample) uint64 { // for most of crowdTime, again and again
		counts++
		return uint64(counts % int(crowdTime/countEvery-1))
	}
	_, pauses := p.wait(forever, false)
	require.Equal(t, p.looks(p.pollTime), pauses)
	require.Zero(t, p.early)

	crowd := func(goroutines uint64) { countWaiting = func(*[3]metrics.Sample) uint64 { return goroutines } }
	lose := func() (early int) {
		crowd(1)
		_, pauses := p.wait(forever, false)
		require.Equal(t, p.looks(crowdTime), pauses)
		crowd(0)

		for p.early > 0 {
			_, pauses := p.wait(forever, false)
			require.Equal(t, p.earlyPauses, pauses)
			early++
		}
		return early
	}
	for want := minEarly; want < 4*maxEarly; want *= 4 {
		require.Equal(t, min(want, maxEarly), lose())
	}
	p.wait(1, false) // keeps the core
	p.wait(1, false)
	require.Equal(t, maxEarly, lose())
	for p.backOff > 0 {
		p.wait(1, false)
	}
	require.Equal(t, minEarly, lose())
}

// A rank that is a process tells when it has lost its core to another thread, and not when
// goroutines of its own process need the core.
func TestLostCoresAreTold(t *testing.T) {
	p := newPoller(t)
	n := &neighbour{state: new(State)}
	r := NewMember(NewGroup([]*State{new(State), new(State), n.state}, new(Words), nil, n), 1, nil, true)
	call := func() {
		n.seq++
		e := &transport.Arrival{Ctx: context.Background(), Seq: n.seq}
		require.NoError(t, r.Begin(e))
		r.group.states[0].line[n.seq&1].epoch.Store(n.seq)
		r.Publish(e)
		require.NoError(t, r.AwaitAll())
	}

	call()
	countWaiting = func(*[3]metrics.Sample) uint64 { return 1 }
	call()
	require.Empty(t, n.lost)
	require.Equal(t, minEarly, r.budgets.spinning.early)
	for range minEarly {
		call()
	}
	countWaiting = func(*[3]metrics.Sample) uint64 { return 0 }
	p.tick = 2 * timeSlice
	call()
	require.Equal(t, []int{1}, n.lost)
}

// Goroutines that wait for a processor are counted.
func TestWaiting(t *testing.T) {
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	var done sync.WaitGroup
	var isOver interleave.Bool
	for range 3 {
		done.Go(func() {
			for !isOver.Load() {
				runtime.Gosched()
			}
		})
	}
	require.GreaterOrEqual(t, countWaiting(&processors.samples), uint64(3))
	isOver.Store(true)
	done.Wait()
	require.Zero(t, testing.AllocsPerRun(100, func() { countWaiting(&processors.samples) }))
}

// One rank counts at a time. The others go on polling with the count before, and count again when
// it is old.
func TestOneRankCounts(t *testing.T) {
	tick := countEvery
	setClock(t, &tick)
	counting, result := make(chan bool), make(chan uint64)
	countWaiting = func(*[3]metrics.Sample) uint64 {
		counting <- true
		return <-result
	}
	c := &crowd{}
	first := make(chan uint64)
	go func() { first <- c.count(clock()) }()
	<-counting
	require.Zero(t, c.count(clock()), "while the first one counts")
	result <- 3
	require.EqualValues(t, 3, <-first)
	require.EqualValues(t, 3, c.count(time.Duration(c.counted.Load())), "the count is new")

	go func() { first <- c.count(clock()) }()
	<-counting
	result <- 0
	require.Zero(t, <-first, "it was old")
}
