package groupsync

import (
	"runtime/metrics"
	"time"

	"github.com/goccl/goccl/internal/spin"
)

// If each rank has a core, a wait polls for pollTime, or for as long as a wake-up takes here if that
// is longer, and then parks. A rank that computes for less than that longer than the others
// therefore finds them polling, and no call waits for a rank to wake up.
//
// A poll ends early if the rank shares its core: another thread has run on it meanwhile, a yield
// took a time slice, or other goroutines have waited for a processor for crowdTime. The next waits then poll for about a microsecond only: in
// minEarly waits at first, because other threads and goroutines run now and then, and in twice as
// many each time that the core is lost again; in maxEarly waits if it was lost to goroutines.
//
// A rank that has just woken another one polls until that has had time to wake up, unless the other
// one needs the rank's processor for that. It would otherwise park meanwhile, and the two would go on
// waking each other.
const (
	pollTime    = 400 * time.Microsecond
	crowdTime   = 100 * time.Microsecond
	lookEvery   = 64                     // pauses between two checks for interruptions, and of the clock
	countEvery  = 10 * time.Microsecond  // between two counts of the goroutines without a processor
	earlyTime   = time.Microsecond       // of a poll in a wait that parks early
	timeSlice   = 300 * time.Microsecond // a poll interrupted for so long has lost its core
	minWakeTime = 20 * time.Microsecond
	maxWakeTime = 2 * time.Millisecond
	minEarly    = 4
	maxEarly    = 256
)

// Processes yield before they sleep. A yield to a rank that is ready to run costs a tenth of a
// sleep and a wake-up. A yield to a process that computes costs a time slice, which is
// milliseconds.
const maxYields = 100

// budget determines how long the waits of one goroutine poll and yield before they sleep. It
// learns from earlier waits. With the zero value waits sleep at once.
type budget struct {
	pauses      int  // of a poll; 0: waits do not poll
	wakePauses  int  // of a poll while another rank wakes up
	earlyPauses int  // of a poll in a wait that parks early
	countPauses int  // between two counts of the goroutines without a processor; a multiple of lookEvery
	crowdPauses int  // while goroutines wait for a processor until the core counts as lost
	maxYields   int  // 0 if ranks are goroutines
	early       int  // the next waits that park early
	backOff     int  // early after the core was lost last; 0 after a wait that did not lose it
	crowd       bool // it was lost to goroutines
	goroutines  *[3]metrics.Sample
}

// newBudget returns the budget of waits that poll if poll is set, and yield if processes is not
// nil.
func newBudget(poll bool, processes Processes) (b budget) {
	if poll {
		wakeTime := min(max(spin.WakeTime(), minWakeTime), maxWakeTime)
		b.wakePauses = spin.Pauses(wakeTime)
		b.pauses = spin.Pauses(max(pollTime, wakeTime))
		b.earlyPauses = spin.Pauses(earlyTime)
		b.countPauses = (spin.Pauses(countEvery)/lookEvery + 1) * lookEvery
		b.crowdPauses = min(spin.Pauses(max(crowdTime, 2*wakeTime)), b.pauses/2)
		b.goroutines = &[3]metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"},
			{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/gomaxprocs:threads"}}
	}
	if processes != nil {
		b.maxYields = maxYields
	}
	return b
}

// wait is the state of one wait. The zero value starts one.
type wait struct {
	pauses int
	yields int
	roomy  int  // pauses before other goroutines began to wait for a processor
	wakes  bool // the rank has just woken another one
	polled bool // the poll is over
	lost   bool // the core was lost
	crowd  bool // to goroutines
	looked bool
	parked bool
	woken  bool          // it has returned from a sleep and not looked since
	events uint64        // as of the last look
	last   time.Duration // of clock, as of the last look at it; 0 before the first
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
	case b.pauses > 0 && !w.polled:
		spin.Pause()
		w.pauses++
		b.poll(w)
		return paused
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
	limit := b.pauses
	switch {
	case b.early > 0 && w.wakes && !b.crowd:
		limit = b.wakePauses
	case b.early > 0:
		limit = b.earlyPauses
	}
	w.polled = w.pauses >= limit
	if w.pauses%lookEvery != 0 {
		return
	}
	now := clock()
	w.lost = w.last != 0 && now-w.last > timeSlice
	w.last = now
	if w.pauses%b.countPauses == 0 {
		if waiting(b.goroutines) == 0 {
			w.roomy = w.pauses
		}
		w.crowd = w.pauses-w.roomy >= b.crowdPauses
		w.lost = w.lost || w.crowd
	}
	w.polled = w.polled || w.lost
}

// waiting returns how many goroutines of this process are ready to run and find all processors
// busy, in 0.2 us. A goroutine that was woken while a processor is idle does not count: it will soon
// run there. Tests replace it.
var waiting = func(goroutines *[3]metrics.Sample) uint64 {
	metrics.Read(goroutines[:])
	runnable, running, processors := goroutines[0].Value.Uint64(), goroutines[1].Value.Uint64(), goroutines[2].Value.Uint64()
	if running < processors {
		return 0
	}
	return runnable
}

// end adapts the budget after a wait.
func (b *budget) end(w *wait) {
	switch {
	case w.lost:
		b.crowd = w.crowd
		b.backOff = min(max(2*b.backOff, minEarly), maxEarly)
		if w.crowd { // to park costs little while other goroutines are ready to run
			b.backOff = maxEarly
		}
		b.early = b.backOff
	case b.early > 0:
		b.early--
	case w.pauses+w.yields > 0:
		b.backOff = 0
	}
}
