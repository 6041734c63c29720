package flight

import (
	"fmt"
	"os"
	"sync/atomic"
)

// Heap is the memory of the ranks of one process. It implements transport.Records.
type Heap struct {
	job   string
	parts [][]byte
}

// heaps counts the Heaps of this process.
var heaps atomic.Int64

// NewHeap returns the memory of that many ranks.
func NewHeap(ranks int) *Heap {
	h := &Heap{job: fmt.Sprintf("pid%d-%d", os.Getpid(), heaps.Add(1)), parts: make([][]byte, ranks)}
	for i := range h.parts {
		h.parts[i] = make([]byte, PartBytes(ranks)) // so large that it starts at a page
	}
	return h
}

// Job returns a name for the ranks, unique to this process and Heap.
func (h *Heap) Job() string { return h.job }

// Part returns the part of a rank.
func (h *Heap) Part(rank int) []byte { return h.parts[rank] }

// Vanished returns nil: the heap does not vanish.
func (h *Heap) Vanished(any) error { return nil }

// Free does nothing: the garbage collector frees the memory.
func (h *Heap) Free() error { return nil }
