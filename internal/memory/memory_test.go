package memory

import (
	"math"
	"strconv"
	"testing"
)

// For lengths that no system can provide Bytes returns an error. Go's make would panic or end
// the process.
func TestBytes(t *testing.T) {
	for _, n := range []int{0, 1, trial - 1, trial, 5*trial + 3} {
		b, err := Bytes(n)
		if err != nil || len(b) != n {
			t.Errorf("%d bytes: %d, %v", n, len(b), err)
		}
	}
	none := []int{math.MaxInt, math.MaxInt - 4095}
	if strconv.IntSize == 64 {
		none = append(none, math.MaxInt>>13, math.MaxInt>>16) // these the runtime would try to allocate
	}
	for _, n := range none {
		if b, err := Bytes(n); err == nil {
			t.Errorf("%d bytes: %d", n, len(b))
		}
	}
}
