package measure

import (
	"math/rand/v2"
	"slices"
	"time"
)

// computedBytes is the memory on which each rank computes, about a core's second cache:
// computing for a while leaves nothing else in the first cache and little in the second, as in
// a program.
const computedBytes = 1 << 20

// computation is the work of one rank between its calls: one multiply-add for each element of
// its memory, round and round. Its amount is calibrated once. It does not read the clock,
// which would end it at the right time however slow its memory is.
type computation struct {
	x        []float32
	at       int     // the next element
	elements float64 // that take the requested time
	jitter   float64
	random   *rand.Rand
}

// newComputation calibrates a computation that takes the time d. All ranks must call it at the
// same time, so that each computes as fast as later. jitter is the share by which the amount
// varies; rank determines how.
func newComputation(d time.Duration, jitter float64, rank int) *computation {
	c := &computation{x: make([]float32, computedBytes/4), jitter: jitter, random: rand.New(rand.NewPCG(1, uint64(rank)))}
	const passes = 31
	var times [passes]int64
	for i := range times {
		start := nanotime()
		multiplyAdd(c.x)
		times[i] = nanotime() - start
	}
	slices.Sort(times[:])
	c.elements = float64(len(c.x)) * float64(d) / float64(max(1, times[passes/2]))
	return c
}

// run computes a share of the requested time.
func (c *computation) run(share float64) {
	remaining := int(share * c.elements * (1 + c.jitter*(2*c.random.Float64()-1)))
	for remaining > 0 {
		n := min(remaining, len(c.x)-c.at)
		multiplyAdd(c.x[c.at:][:n])
		c.at = (c.at + n) % len(c.x)
		remaining -= n
	}
}

func multiplyAdd(x []float32) {
	for i, v := range x {
		x[i] = v*0.5 + 1
	}
}
