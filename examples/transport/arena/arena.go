// Package arena provides the transport "arena": goroutine ranks that copy through a small arena, as
// processes do through shared memory, in one process. A kernel that leans on seeing other ranks'
// buffers, or whole inputs at once, fails on it under the race detector and a debugger.
package arena

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// Name is the transport's name in ccl.yaml.
const Name = "arena"

func init() { transport.Register(transport.Provider{Name: Name, Detect: detect, Join: join}) }

// detect accepts goroutine ranks. auto is false: programs ask for the transport by name.
func detect(j *transport.Job) (auto bool, err error) {
	if j.Launched {
		return false, &transport.NotAvailableError{Transport: Name, Reason: fmt.Sprintf("%s, and it connects goroutines of one process", j.Origin)}
	}
	return false, nil
}

func join(_ context.Context, j *transport.Job) ([]transport.Endpoint, error) { return New(j.Size) }

// New connects that many goroutine ranks and returns their endpoints, by rank.
func New(ranks int) ([]transport.Endpoint, error) {
	all, err := shm.NewHeap(ranks, shm.SmallestGeometry(ranks))
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i] = endpoint{all[i].(heap)}
	}
	return all, nil
}

// heap is what an endpoint of shm.NewHeap implements. A wrapper has to name all of it: what it
// leaves out is lost to the engine.
type heap interface {
	transport.Endpoint
	transport.Groups
	transport.Regions
	transport.Recorder
}

// endpoint is one of shm.NewHeap, under this transport's name.
type endpoint struct{ heap }

// Name returns the transport's name.
func (endpoint) Name() string { return Name }

// Group implements transport.Groups.
func (e endpoint) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	ep, err := e.heap.Group(ctx, number, members)
	if err != nil {
		return nil, err
	}
	return endpoint{ep.(heap)}, nil
}
