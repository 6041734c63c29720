package dist_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/require"
)

// A warm call does not allocate, neither for its options nor for the lookup of its group;
// an asynchronous one allocates its Work. The test counts all allocations of the process
// over ten thousand calls of every rank, including the runtime's few, such as those for
// goroutines that park.
func TestWarmCallsDoNotAllocate(t *testing.T) {
	const calls, bearable = 3000, 100
	// The buffers of a rank's calls are allocated once.
	type buffers struct {
		ctx           context.Context
		group         *dist.ProcessGroup
		small, output []float32
		counts        []int
	}
	for name, call := range map[string]func(b *buffers) error{
		"AllReduce": func(b *buffers) error {
			return dist.AllReduce(b.small, dist.Max)
		},
		"AllReduce with options": func(b *buffers) error {
			return dist.AllReduce(b.small, dist.Max, dist.WithCallAlgorithm("direct"), dist.WithContext(b.ctx), dist.WithCallTimeout(time.Minute), dist.WithLabel("loss"))
		},
		"Broadcast with options": func(b *buffers) error {
			return dist.Broadcast(b.small, 1, dist.WithGroup(b.group), dist.WithContext(b.ctx))
		},
		"Reduce": func(b *buffers) error {
			return dist.Reduce(b.small, 1, dist.Sum)
		},
		"AllReduceAsync": func(b *buffers) error { // which allocates its Work
			work, err := dist.AllReduceAsync(b.small, dist.Max, dist.WithContext(b.ctx))
			if err != nil {
				return err
			}
			return work.Wait(context.Background())
		},
		"AllGatherV": func(b *buffers) error {
			return dist.AllGatherV(b.output, b.small[:1], b.counts)
		},
		"Barrier": func(b *buffers) error {
			return dist.Barrier()
		},
	} {
		for _, ranks := range []int{2, 4} {
			t.Run(fmt.Sprintf("%s/ranks=%d", name, ranks), func(t *testing.T) {
				var before, after runtime.MemStats
				err := spawn(t, initialised(func(ctx context.Context, rank int) error {
					group, err := dist.Default()
					if err != nil {
						return err
					}
					b := &buffers{ctx, group, make([]float32, 8), make([]float32, ranks), make([]int, ranks)}
					for r := range b.counts {
						b.counts[r] = 1
					}
					for range calls / 10 {
						if err := call(b); err != nil {
							return err
						}
					}
					if rank == 0 {
						runtime.GC()
						runtime.ReadMemStats(&before)
					}
					if err := dist.Barrier(); err != nil {
						return err
					}
					for range calls {
						if err := call(b); err != nil {
							return err
						}
					}
					if err := dist.Barrier(); err != nil {
						return err
					}
					if rank == 0 {
						runtime.ReadMemStats(&after)
					}
					return dist.Barrier()
				}), dist.WithRanks(ranks))
				require.NoError(t, err)
				allowed := uint64(bearable)
				if name == "AllReduceAsync" {
					allowed += uint64(calls * ranks * 5 / 4) // and now and then a goroutine that makes them
				}
				require.LessOrEqual(t, after.Mallocs-before.Mallocs, allowed, "allocations in %d calls", calls*ranks)
			})
		}
	}
}

// A call of a single rank: the rank lookup, the options, the checks.
func BenchmarkAllReduceOfOneRank(b *testing.B) {
	if err := dist.InitProcessGroup("ccl"); err != nil {
		b.Fatal(err)
	}
	defer dist.DestroyProcessGroup()
	tensor := []float32{1}
	b.ReportAllocs()
	for b.Loop() {
		if err := dist.AllReduce(tensor, dist.Sum); err != nil {
			b.Fatal(err)
		}
	}
}
