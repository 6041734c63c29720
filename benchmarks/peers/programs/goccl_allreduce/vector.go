package main

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/goccl/goccl/benchmarks/peers/programs/internal/program"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// vector is the input and the output of one rank's all-reduce; if it is empty, a barrier is
// measured.
type vector struct {
	x           []float32
	allocated   []float32 // of Alloc, as long as the longest x; nil: every x is made for its size
	rank, ranks int
	conns       []net.Conn // to all other ranks, which exchange bytes instead; nil: they do not
	bytes       []byte     // leave by these
	arriving    []byte
	steps       float64 // of compute before each call, on average
	state       uint64  // of compute
}

// newVector returns an empty vector of this rank. It is collective.
func (a arguments) newVector(rank int) (*vector, error) {
	v := &vector{rank: rank, ranks: a.Ranks, state: 1}
	var err error
	v.steps, err = calibrate(a.compute)
	switch {
	case err != nil || a.Form == "private":
		return v, err
	case a.Form == "sockets":
		return v, v.connect()
	}

	group, err := dist.Default()
	if err != nil {
		return nil, err
	}
	v.allocated, err = ccl.Alloc[float32](context.Background(), group.Communicator(), max(1, slices.Max(a.sizes)/4))
	return v, err
}

func (v *vector) resize(count int) {
	switch {
	case v.allocated != nil:
		v.x = v.allocated[:count]
	case v.conns != nil:
		v.resizeBytes(4 * count)
	default:
		v.x = make([]float32, count)
	}
}

// round computes, fills the vector with the inputs of round i, runs the operation once between
// barriers, and returns how long it took on this rank.
func (v *vector) round(i int) (time.Duration, error) {
	v.state = compute(v.state, int64(v.steps*jitter(v.rank, i)))
	for j := range v.x {
		v.x[j] = float32(v.rank + (i+j)&7) // differs between ranks, adjacent elements and successive rounds
	}
	return program.TimeTogether(v.operation)
}

func (v *vector) operation() error {
	if len(v.bytes) > 0 {
		return v.exchange()
	}
	if len(v.x) == 0 {
		return dist.Barrier()
	}
	return dist.AllReduce(v.x, dist.Sum)
}

// countErrors returns how many elements differ from the sum of all ranks' inputs of round i.
func (v *vector) countErrors(i int) (n int64) {
	for j, got := range v.x {
		if got != float32(v.ranks*(v.ranks-1)/2+v.ranks*((i+j)&7)) {
			n++
		}
	}
	return n
}
