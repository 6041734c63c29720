package shm

import (
	"runtime"

	"github.com/goccl/goccl/internal/lines"
	"github.com/goccl/goccl/transport"
)

// NewHeap connects ranks goroutine ranks through an arena on the heap and returns
// their endpoints, by rank.
func NewHeap(ranks int, g Geometry) ([]transport.Endpoint, error) {
	if err := g.validate(ranks); err != nil {
		return nil, err
	}
	n := newNode(heapArena(g.layout(ranks).total), g, ranks, lines.NewGoroutines(ranks))
	spin := ranks <= min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	eps := make([]transport.Endpoint, ranks)
	r := heapRegions()
	for i := range eps {
		eps[i] = n.endpoint(i, spin, *r)
	}
	return eps, nil
}
