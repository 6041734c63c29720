package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport/local"
)

// BenchmarkAllReduce shows an all-reduce (float32, sum, in place) beside the
// yardsticks of the same run: "own copy" is every rank copying as many bytes of
// its own, "peer copy" is every rank copying what its neighbour has just written,
// both followed by a barrier.
func BenchmarkAllReduce(b *testing.B) {
	ctx := context.Background()
	by := func(algorithm string) func(*testing.B, *rankedRun) {
		return func(b *testing.B, r *rankedRun) {
			r.check = true
			r.op = func(c *ccl.Communicator) error {
				x := r.in[c.Rank()]
				return ccl.AllReduce(ctx, c, x, x, ccl.Sum, ccl.WithAlgorithm(algorithm))
			}
		}
	}
	copyOf := func(distance int) func(*testing.B, *rankedRun) {
		return func(b *testing.B, r *rankedRun) {
			r.op = func(c *ccl.Communicator) error {
				copy(r.out[c.Rank()], r.in[(c.Rank()+distance)%c.Size()])
				return c.Barrier(ctx)
			}
		}
	}
	for _, ranks := range []int{2, 4, 8} {
		for _, bytes := range []int{0, 4, 64, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 16 << 20, 64 << 20} {
			for _, what := range []struct {
				name string
				set  func(*testing.B, *rankedRun)
			}{
				{"barrier", nil}, {"own-copy", copyOf(0)}, {"peer-copy", copyOf(1)},
				{"direct", by("direct")}, {"ring", by("ring")},
			} {
				if (bytes == 0) != (what.set == nil) {
					continue
				}
				b.Run(fmt.Sprintf("ranks=%d/bytes=%d/what=%s", ranks, bytes, what.name), func(b *testing.B) {
					r := rankedRun{op: func(c *ccl.Communicator) error { return c.Barrier(ctx) }}
					r.allocate(ranks, bytes)
					if what.set != nil {
						what.set(b, &r)
					}
					r.run(b)
				})
			}
		}
	}
}

// A rankedRun runs goroutine ranks through b.N rounds. In each round every rank
// rewrites its input, all meet, twice, so that none is still waking up, and the
// operation is timed on every rank; all meet again, so that none rewrites while
// another is timed. A round counts as long as its slowest rank took. Reported are
// the median and the 99th percentile over the rounds, in microseconds.
type rankedRun struct {
	in, out [][]float32
	op      func(*ccl.Communicator) error
	check   bool // the inputs must have become the sum of all
}

func (r *rankedRun) allocate(ranks, bytes int) {
	for range ranks {
		r.in = append(r.in, make([]float32, bytes/4))
		r.out = append(r.out, make([]float32, bytes/4))
	}
}

func (r *rankedRun) run(b *testing.B) {
	ctx := context.Background()
	ranks := len(r.in)
	times := make([][]time.Duration, ranks)
	var wg sync.WaitGroup
	for rank, ep := range local.New(ranks) {
		times[rank] = make([]time.Duration, b.N)
		wg.Go(func() {
			c, err := ccl.New(ctx, ep)
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			for i := range times[rank] {
				for j := range r.in[rank] {
					r.in[rank][j] = float32(rank + (i+j)&7)
				}
				err := errors.Join(c.Barrier(ctx), c.Barrier(ctx))
				start := time.Now()
				err = errors.Join(err, r.op(c))
				times[rank][i] = time.Since(start)
				if err = errors.Join(err, c.Barrier(ctx)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		return
	}
	if r.check {
		for rank, x := range r.in {
			for j, got := range x {
				want := float32(ranks*(ranks-1)/2 + ranks*((b.N-1+j)&7))
				if got != want {
					b.Fatalf("rank %d: element %d is %v, want %v", rank, j, got, want)
				}
			}
		}
	}
	slowest := make([]time.Duration, b.N)
	for i := range slowest {
		for rank := range ranks {
			slowest[i] = max(slowest[i], times[rank][i])
		}
	}
	slices.Sort(slowest)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	b.ReportMetric(0, "ns/op") // would count the rewriting
	b.ReportMetric(us(slowest[b.N/2]), "p50-us")
	b.ReportMetric(us(slowest[b.N*99/100]), "p99-us")
}
