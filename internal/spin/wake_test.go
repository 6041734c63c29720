package spin

import (
	"runtime"
	"testing"
)

// A wake-up takes time, unless there is one processor. It is measured once.
func TestWakeTime(t *testing.T) {
	d := WakeTime()
	if (d > 0) != (runtime.GOMAXPROCS(0) > 1) || WakeTime() != d {
		t.Errorf("a wake-up takes %v, and then %v", d, WakeTime())
	}
}
