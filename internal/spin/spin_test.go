package spin

import (
	"testing"
	"time"
)

// The number of pauses is proportional to the duration, and at least one.
func TestPauses(t *testing.T) {
	ms, s := Pauses(time.Millisecond), Pauses(time.Second)
	if ms < 100 || ms > 10_000_000 {
		t.Errorf("%d pauses in a millisecond", ms)
	}
	if s < 990*ms || s > 1010*ms {
		t.Errorf("%d pauses in a second, %d in a millisecond", s, ms)
	}
	if n := Pauses(0); n != 1 {
		t.Errorf("%d pauses in no time", n)
	}
}
