package main

import (
	"errors"
	"time"

	"github.com/goccl/goccl/dist"
)

// vector is the input and output of one rank.
type vector struct {
	x           []float32
	rank, ranks int
}

// round returns how long the operation took on this rank.
func (v vector) round(i int) (time.Duration, error) {
	for j := range v.x {
		v.x[j] = float32(v.rank + (i+j)&7) // unique to the rank, the element and the round
	}
	met := errors.Join(dist.Barrier(), dist.Barrier())
	start := time.Now()
	err := v.operation()
	took := time.Since(start)
	return took, errors.Join(met, err, dist.Barrier())
}

// operation is the measured one.
func (v vector) operation() error {
	if len(v.x) == 0 {
		return dist.Barrier()
	}
	return dist.AllReduce(v.x, dist.Sum)
}

// wrong counts the elements that are not the sum of all ranks' inputs.
func (v vector) wrong(i int) (n int64) {
	for j, got := range v.x {
		if got != float32(v.ranks*(v.ranks-1)/2+v.ranks*((i+j)&7)) {
			n++
		}
	}
	return n
}

// callsWithin returns how many rounds fit into the budget, by the fastest of a few;
// all ranks use rank 0's result.
func (v vector) callsWithin(budget time.Duration, most int64) (int64, error) {
	fastest := budget
	for i := range warmUp {
		start := time.Now()
		if _, err := v.round(i); err != nil {
			return 0, err
		}
		v.wrong(i)
		fastest = min(fastest, time.Since(start))
	}
	calls := []int64{min(max(minCalls, int64(budget/fastest)), most)}
	err := dist.Broadcast(calls, 0)
	return calls[0], err
}
