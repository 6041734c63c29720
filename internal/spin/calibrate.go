package spin

import (
	"sync"
	"time"
)

// Pauses returns how many calls of Pause take as long as d, at least one: they take
// from one nanosecond to some forty, by the processor and by how the program was
// built.
func Pauses(d time.Duration) int { return max(int(float64(d)/onePause()), 1) }

// onePause measures how many nanoseconds a pause takes, once, in less than a tenth
// of a millisecond. Of several measurements the shortest counts: what makes one
// longer is that the machine did something else.
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
