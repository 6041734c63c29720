package groupsync

import (
	"time"

	"github.com/goccl/goccl/internal/spin"
)

// A wait polls for as many pauses as its rank's budget allows, then parks. The budget is
// halved after each park and doubled after each success, so that ranks that share a core learn
// to park at once. It is reset to its maximum every fullSpinParks parks, so that they notice
// when they no longer share it. Waking takes 3 to 25 microseconds, so polling for up to twice
// as long at most doubles what a wait costs the machine.
const (
	spinTime      = 50 * time.Microsecond
	minSpin       = 32
	fullSpinParks = 64 // parks until the budget is reset to its maximum
	lookEvery     = 64 // pauses between two checks for interruptions
)

// Processes yield before they sleep. A yield to a rank that is ready to run costs a tenth of a
// sleep and a wake-up. A yield to a process that computes costs a time slice, which is
// milliseconds. After such a bad yield ranks sleep at once in the next waits: in minSleepWaits
// at first, because all ranks compute now and then between two calls, and in twice as many
// each time that the next yield is bad as well.
const (
	maxYields     = 100
	minSleepWaits = 4
	maxSleepWaits = 256
)

// budget determines how long the waits of one goroutine poll and yield before they sleep. It
// learns from earlier waits. With the zero value waits sleep at once.
type budget struct {
	spin, maxSpin, parks int
	maxYields            int // 0 if ranks are goroutines
	sleepWaits           int // the next waits that do not yield
	backOff              int // sleepWaits after the last bad yield; 0 after a good one
}

// newBudget returns the budget of waits that poll if poll is set, and yield if processes is not
// nil.
func newBudget(poll bool, processes Processes) (b budget) {
	if poll {
		b.maxSpin = max(spin.Pauses(spinTime), minSpin)
		b.spin = b.maxSpin
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
	looked bool
	parked bool
	woken  bool   // it has returned from a sleep and not looked since
	events uint64 // as of the last look
}

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
	case w.pauses < b.spin:
		w.pauses++
		spin.Pause()
		return paused
	case w.yields < b.maxYields && b.sleepWaits == 0 && !w.parked:
		w.yields++
		if !processes.Yield() {
			b.backOff = min(max(2*b.backOff, minSleepWaits), maxSleepWaits)
			b.sleepWaits = b.backOff
		}
		return yielded
	case !w.parked:
		w.parked = true
		b.parks++
		b.sleepWaits = max(b.sleepWaits-1, 0)
		b.shrink()
		if b.parks%fullSpinParks == 0 {
			b.spin = b.maxSpin
		}
		return announced
	}
	return asleep
}

// end adapts the budget after a wait.
func (b *budget) end(w *wait) {
	switch {
	case w.parked:
	case w.yields == 0:
		b.spin = min(2*b.spin, b.maxSpin)
	default:
		b.shrink()
		if b.sleepWaits == 0 {
			b.backOff = 0 // all yields were good
		}
	}
}

func (b *budget) shrink() { b.spin = min(max(b.spin/2, minSpin), b.maxSpin) }
