package shm_test

import (
	"context"
	"fmt"
	"os"
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

func TestMappedConformance(t *testing.T) { transporttest.Test(t, mapped) }
