package spin

import (
	"sync"
	"time"
)

// Pauses returns how many calls of Pause take as long as d, at least one. One call takes 1 to
// about 40 ns, depending on the processor and on build tags. Pauses may be called concurrently.
func Pauses(d time.Duration) int { return max(int(float64(d)/onePause()), 1) }

// onePause measures once how many nanoseconds a pause takes, in less than 0.1 ms. It returns
// the shortest of several measurements, because other work on the machine only makes them
// longer.
var onePause = sync.OnceValue(func() float64 {
	const pauses = 200
	least := time.Duration(1 << 62)
	for range 10 {
		start := time.Now()
		for range pauses {
			Pause()
		}
		least = min(least, time.Since(start))
	}
	return float64(max(least, 1)) / pauses
})
