//go:build !race

// The race detector identifies memory by its address, so it does not see that ranks synchronise
// through a file that each of them maps at another address. The same protocol runs under the race
// detector on the heap.

package shm_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
	"github.com/goccl/goccl/transport/transporttest"
)

var jobs interleave.Int64

// mapped connects ranks that are goroutines. Each maps the segment separately, as a process does.
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
	// A rank that yields or sleeps in a system call keeps its processor of the Go runtime for
	// a while. As a process it would have its own runtime.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	// The suite makes hundreds of groups: 8 MiB of memory for each would be most of the work.
	defer shm.JoinWith(func(ranks int) shm.Geometry {
		g := shm.SmallestGeometry(ranks)
		g.Payload, g.Piece, g.Flight = 1<<10, 1<<10, shm.DefaultGeometry(ranks).Flight
		return g
	})()
	transporttest.Test(t, mapped)
}
