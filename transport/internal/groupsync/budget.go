package groupsync

import (
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/spin"
)

// If each rank has a core, a wait polls for leastPoll, or for as long as a wake-up takes here if
// that is longer, and then parks. A rank that computes for less than that longer than the others
// therefore finds them polling, and no call waits for a rank to wake up.
//
// A poll ends early if the rank shares its core: another thread has run on it meanwhile, a yield
// took a time slice, or other goroutines have waited for a processor for crowdTime.
//
// The next waits then poll for about a microsecond only: in minEarly waits at first, because other
// threads run now and then, and in twice as many each time that the core is lost again. If it is
// lost to goroutines, these are four times as many, since to park costs little then, and a wait
// that keeps the core halves the number: a garbage collection is over soon, and more ranks than
// processors stay.
//
// Where the clock stands still, as in a bubble of testing/synctest, a count of pauses ends a poll.
// Elsewhere it would not do: how long a pause takes is measured once, and changes.
//
// A rank that has just woken another one polls until that has had time to wake up, unless the
// other one needs the rank's processor for that. It would otherwise park meanwhile, and the two
// would go on waking each other.
const (
	leastPoll   = 400 * time.Microsecond
	crowdTime   = 100 * time.Microsecond
	lookEvery   = interleave.LookEvery   // pauses between two checks for interruptions, and of the clock
	countEvery  = 10 * time.Microsecond  // between two looks at the goroutines without a processor
	earlyTime   = time.Microsecond       // of a poll in a wait that parks early
	timeSlice   = 300 * time.Microsecond // a poll interrupted for so long has lost its core
	minWakeTime = 20 * time.Microsecond
	maxWakeTime = 2 * time.Millisecond
	minEarly    = 4
	maxEarly    = 256
)

// Processes yield before they sleep. A yield to a rank that is ready to run costs a tenth of a
// sleep and a wake-up. A yield to a process that computes costs a time slice, which is
// about a millisecond, or more.
const maxYields = 100

// budget determines how long the waits of one goroutine poll and yield before they sleep. It
// learns from earlier waits. With the zero value waits sleep at once.
type budget struct {
	pollTime    time.Duration // 0: waits do not poll
	wakeTime    time.Duration // of a poll while another rank wakes up
	mostPauses  int           // of a poll while the clock stands still
	earlyPauses int           // of a poll in a wait that parks early
	maxYields   int           // 0 if ranks are goroutines
	early       int           // the next waits that park early
	backOff     int           // early after the core was lost last; less after a wait that did not lose it
	crowded     bool          // it was lost to goroutines
}

// budgets are those of a rank's calls.
type budgets struct {
	current  *budget // of the current call
	spinning budget
	sleeping budget // of calls with NoSpin: zero
	woke     bool   // the last word that the rank has stored has woken another rank
}

// begin chooses the budget of a call.
func (b *budgets) begin(noSpin bool) {
	b.current = &b.spinning
	if noSpin {
		b.current = &b.sleeping
	}
}

// newBudget returns the budget of waits that poll if poll is set, and yield if processes is not
// nil.
func newBudget(poll bool, processes Processes) (b budget) {
	if poll {
		wakeTime := min(max(interleave.Fact(spin.WakeTime, 0), minWakeTime), maxWakeTime)
		b.wakeTime, b.pollTime = wakeTime, max(leastPoll, wakeTime)
		b.mostPauses = interleave.Fact(func() int { return spin.Pauses(4 * b.pollTime) }, 16)
		b.earlyPauses = interleave.Fact(func() int { return spin.Pauses(earlyTime) }, 2)
	}
	if processes != nil {
		b.maxYields = maxYields
	}
	return b
}

// wait is the state of one wait. The zero value starts one.
type wait struct {
	pauses  int
	yields  int
	wakes   bool // the rank has just woken another one
	polled  bool // the poll is over
	lost    bool // the core was lost
	crowded bool // to goroutines
	looked  bool
	parked  bool
	woken   bool   // it has returned from a sleep and not looked since
	events  uint64 // as of the last look

	// Times of clock: of the first and the last look at it, of the last count of goroutines and of
	// the last one that found none without a processor. All are 0 before the first look.
	began, last, counted, roomy time.Duration
}

// clock returns the time since the program started. Tests replace it.
var clock = func() time.Duration { return time.Since(started) }

var started = time.Now()

// expense is the kind of a step of a wait.
type expense uint8

const (
	paused    expense = iota // spend has paused
	yielded                  // spend has yielded the core
	announced                // the caller announces that it is about to sleep
	asleep                   // the caller sleeps
)

// spend determines the next step of a wait, and takes it if it is a pause or a yield.
func (b *budget) spend(w *wait, processes Processes) expense {
	switch {
	case b.pollTime > 0 && !w.polled:
		spin.Pause()
		w.pauses++
		b.poll(w)
		w.polled = interleave.PollEnds() || w.polled
		return paused
	// Another goroutine may need the core.
	case w.yields < b.maxYields && b.early == 0 && !w.lost && !w.parked:
		w.yields++
		w.lost = !processes.Yield()
		return yielded
	case !w.parked:
		w.parked = true
		return announced
	}

	return asleep
}

// poll determines, after a pause, whether the poll is over.
func (b *budget) poll(w *wait) {
	early := b.early > 0 && (!w.wakes || b.crowded)
	w.polled = early && w.pauses >= b.earlyPauses
	if w.pauses%lookEvery != 0 {
		return
	}
	now := clock()
	if w.last == 0 {
		w.began, w.counted, w.roomy, w.last = now, now, now, now
	}
	w.lost = now-w.last > timeSlice
	w.last = now

	if now-w.counted >= countEvery {
		w.counted = now
		if processors.count(now) == 0 {
			w.roomy = now
		}
		w.crowded = now-w.roomy >= crowdTime
		w.lost = w.lost || w.crowded
	}

	limit := b.pollTime
	if b.early > 0 {
		limit = b.wakeTime
	}
	w.polled = w.polled || w.lost || now-w.began >= limit || now == w.began && w.pauses >= b.mostPauses
}

// end adapts the budget after a wait.
func (b *budget) end(w *wait) {
	switch {
	case w.lost:
		b.crowded = w.crowded
		growth := 2
		if w.crowded {
			growth = 4
		}

		b.backOff = min(max(growth*b.backOff, minEarly), maxEarly)
		b.early = b.backOff
	case b.early > 0:
		b.early--
	case w.pauses+w.yields > 0 && b.crowded:
		b.backOff /= 2
	case w.pauses+w.yields > 0:
		b.backOff = 0
	}
}
