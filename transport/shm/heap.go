package shm

import (
	"context"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// NewHeap connects that many goroutine ranks through an arena on the heap, and returns their
// endpoints, by rank. It returns an error if g is invalid.
func NewHeap(ranks int, g Geometry) ([]transport.Endpoint, error) {
	if err := g.validate(ranks); err != nil {
		return nil, err
	}
	return newHeap(ranks, g, ranks <= interleave.Processors()), nil
}

func newHeap(ranks int, g Geometry, poll bool) []transport.Endpoint {
	n := newNode(heapArena(g.layout(ranks).total), g, ranks, groupsync.NewGoroutines(ranks))
	n.poll = poll
	eps := make([]transport.Endpoint, ranks)
	regions := heapRegions(ranks)
	for i := range eps {
		eps[i] = n.endpoint(i, regions)
	}
	return eps
}

// Group implements transport.Groups for ranks with an arena on the heap.
func (ep *endpoint) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return ep.further.Group(ctx, ep.Member, number, members, func(ranks int) []transport.Endpoint {
		return newHeap(ranks, ep.geometry.ofGroup(ranks), ep.poll)
	})
}

// Records implements transport.Recorder for ranks with an arena on the heap.
func (ep *endpoint) Records() (transport.Records, error) {
	n := ep.node
	n.recording.Do(func() { n.records = flight.NewHeap(n.layout.ranks) })
	return n.records, nil
}
