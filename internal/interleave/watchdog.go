//go:build interleave

package interleave

import (
	"runtime/debug"
	"strings"
	"time"
)

// patience is how long a Run may take no step.
var patience = 20 * time.Second

// watch ends the process if the Run that begins takes no step for too long, with the stacks of all
// goroutines. It is called outside of the bubble, where time is real.
func watch() (stop func()) {
	last := -1
	var timer *time.Timer
	timer = time.AfterFunc(patience, func() {
		if now := progress(); now != last {
			last = now
			timer.Reset(patience)
			return
		}

		debug.SetTraceback("all")
		panic("interleave: no step for " + patience.String() + ": a goroutine waits for what package interleave does not know\n\t" +
			strings.Join(running.describe(), "\n\t"))
	})
	return func() { timer.Stop() }
}

// progress returns a number that each step changes.
//
//go:norace
func progress() int {
	s := running
	if s == nil {
		return -2
	}
	return s.steps + s.picks + s.lastSteps
}
