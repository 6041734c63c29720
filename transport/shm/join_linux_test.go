//go:build !race

// The race detector knows memory by its addresses: it does not see that ranks which map
// one file in several places synchronise with each other there. The same protocol runs
// under it on the heap.

package shm_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
	"github.com/goccl/goccl/transport/transporttest"
)

var jobs atomic.Int64

// mapped connects ranks that are goroutines, each of which maps the segment for
// itself, as processes do.
func mapped(t testing.TB, ranks int) []transport.Endpoint {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	name := fmt.Sprintf("test-%d-%d", os.Getpid(), jobs.Add(1))
	eps, errs := make([]transport.Endpoint, ranks), make([]error, ranks)
	var all sync.WaitGroup
	for r := range ranks {
		all.Go(func() { eps[r], errs[r] = shm.Join(ctx, shm.Job{Name: name, Rank: r, Size: ranks}) })
	}
	all.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	return eps
}

func TestMappedConformance(t *testing.T) {
	// A rank that yields or sleeps in a system call keeps its place in the runtime for a
	// while, which a process of its own would have for itself.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	// Worlds by the hundred: 8 MiB of memory for each would be most of the work.
	defer shm.JoinWith(func(ranks int) shm.Geometry {
		g := shm.SmallestGeometry(ranks)
		g.Payload, g.Piece = 1<<10, 1<<10
		return g
	})()
	transporttest.Test(t, mapped)
}
