package groupsync

import (
	"time"

	"github.com/goccl/goccl/internal/spin"
)

// A wait polls for as many pauses as its rank's budget allows before it parks.
// The budget is halved after a park and doubled after a success, so that ranks
// that share a core learn to park at once, and full again now and then, so that
// they notice when they no longer do. To be woken takes 3 to 25 microseconds: who
// polls for twice as long at most doubles what a wait costs the machine.
const (
	spinTime      = 50 * time.Microsecond
	minSpin       = 32
	fullSpinParks = 64 // every so many parks the budget is full again
	lookEvery     = 64 // pauses between two looks at what may interrupt a wait
)

// Processes yield before they sleep: a yield to a rank that is there to run costs a
// tenth of what it takes to sleep and be woken. But a yield to somebody who computes
// costs a slice of the scheduler, which is milliseconds; after such a one ranks sleep
// at once in the next waits: in a few, since everybody computes now and then between
// two calls, and in twice as many if the first yield after them is as bad.
const (
	maxYields     = 100
	minSleepWaits = 4
	maxSleepWaits = 256
)

// budget is what the waits of one goroutine may spend before they sleep, as earlier ones
// have taught. The zero value is that of a patient one, which sleeps at once.
type budget struct {
	spin, maxSpin, parks int
	maxYields            int // 0 where ranks are goroutines
	sleepWaits           int // so many waits do not yield
	backOff              int // how many it were after the last bad yield, 0 after a good one
}

// newBudget returns the budget of waits that poll, if poll is set, and yield where
// others are processes.
func newBudget(poll bool, others Processes) (b budget) {
	if poll {
		b.maxSpin = max(spin.Pauses(spinTime), minSpin)
		b.spin = b.maxSpin
	}
	if others != nil {
		b.maxYields = maxYields
	}
	return b
}

// wait is the state of one wait; its zero value begins one.
type wait struct {
	pauses int
	yields int
	looked bool
	parked bool
	woken  bool   // from a sleep, and has not looked since
	events uint64 // as of the last look
}

// expense is what a step of a wait has come to.
type expense uint8

const (
	paused    expense = iota
	yielded           // the core to others
	announced         // nothing yet: the waiter says now that it is about to sleep
	asleep            // nothing: it sleeps now
)

// spend does the next step of a wait, unless that is the waiter's.
func (b *budget) spend(w *wait, others Processes) expense {
	switch {
	case w.pauses < b.spin:
		w.pauses++
		spin.Pause()
		return paused
	case w.yields < b.maxYields && b.sleepWaits == 0 && !w.parked:
		w.yields++
		if !others.Yield() {
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

// end learns from a wait that is over.
func (b *budget) end(w *wait) {
	switch {
	case w.parked:
	case w.yields == 0:
		b.spin = min(2*b.spin, b.maxSpin)
	default:
		b.shrink()
		if b.sleepWaits == 0 {
			b.backOff = 0 // all of them were good
		}
	}
}

func (b *budget) shrink() { b.spin = min(max(b.spin/2, minSpin), b.maxSpin) }
