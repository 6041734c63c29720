package main

import (
	"time"

	"github.com/goccl/goccl/dist"
)

// compute makes the steps of a random number generator, and returns its new state: work in
// registers.
func compute(state uint64, steps int64) uint64 {
	for range steps {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

const calibrationSteps, calibrations = 20000, 20

// calibrate returns how many steps of compute fit into t. All ranks return rank 0's number.
func calibrate(t time.Duration) (steps float64, err error) {
	fastest, state := time.Hour, uint64(1)
	for range calibrations {
		start := time.Now()
		state = compute(state, calibrationSteps)
		fastest = min(fastest, time.Since(start))
	}
	all := []float64{calibrationSteps * float64(t) / float64(fastest)}
	if state == 0 { // it never is; the result is used, so that the loop stays
		all[0] = 0
	}
	err = dist.Broadcast(all, 0)
	return all[0], err
}

// jitter returns a factor from 0.9 to 1.1, by rank and round the same for all libraries.
func jitter(rank, round int) float64 {
	h := uint32(round)*1021 + uint32(rank) + 1
	for range 2 {
		h = (h ^ h>>16) * 0x45d9f3b
	}
	h ^= h >> 16
	return 0.9 + 0.2*float64(h)/(1<<32)
}
