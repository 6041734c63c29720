package ccl_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport/local"
)

// ranks runs f on the goroutine ranks of a group.
func ranks(b *testing.B, n int, f func(c *ccl.Communicator) error) {
	b.Helper()
	eps := local.New(n)
	var wg sync.WaitGroup
	for _, ep := range eps {
		wg.Go(func() {
			c, err := ccl.New(bg, ep)
			if err == nil {
				err = f(c)
				c.Close()
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

// One message to another rank and one back.
func BenchmarkPingPong(b *testing.B) {
	for _, n := range []int{4, 1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint("bytes=", n), func(b *testing.B) {
			b.ReportAllocs()
			ranks(b, 2, func(c *ccl.Communicator) error {
				buf := make([]byte, n)
				other := 1 - c.Rank()
				for range b.N {
					if c.Rank() == 0 {
						if err := ccl.Send(bg, c, buf, other, 0); err != nil {
							return err
						}
					}
					if _, err := ccl.Recv(bg, c, buf, other, 0); err != nil {
						return err
					}
					if c.Rank() == 1 {
						if err := ccl.Send(bg, c, buf, other, 0); err != nil {
							return err
						}
					}
				}
				return nil
			})
			b.SetBytes(int64(2 * n))
		})
	}
}

// Two ranks compute and then all-reduce the result, step by step; each is the slower one in every
// other step. With a synchronous reduction the faster rank waits for the slower one in each step.
// With an asynchronous one, which is awaited only before the next reduction starts, it does not.
// The benchmark reports the ratio of the two times. 1 is no gain. If each rank has a core, the
// saved waiting makes it 1.33, and the saved wake-ups a little more.
func BenchmarkOverlap(b *testing.B) {
	const steps = 50
	run := func(async bool) time.Duration {
		began := time.Now()
		ranks(b, 2, func(c *ccl.Communicator) error {
			var grads [2][]float32
			for i := range grads {
				grads[i] = make([]float32, 16<<10)
			}
			var w *ccl.Work
			for step := range steps {
				g := grads[step%2]
				work := 100
				if step%2 == c.Rank() {
					work = 200
				}
				for range work {
					for i := range g {
						g[i] = g[i]*0.5 + 1
					}
				}
				if !async {
					if err := ccl.AllReduce(bg, c, g, g, ccl.Avg); err != nil {
						return err
					}
					continue
				}
				if w != nil {
					if err := w.Wait(bg); err != nil {
						return err
					}
				}
				w = started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, c, g, g, ccl.Avg, async) })
			}
			if w != nil {
				return w.Wait(bg)
			}
			return nil
		})
		return time.Since(began)
	}
	var sync, async time.Duration
	for range b.N {
		sync += run(false)
		async += run(true)
	}
	require.NotZero(b, async)
	b.ReportMetric(float64(sync)/float64(async), "sync/async")
	b.ReportMetric(float64(async.Microseconds())/float64(b.N*steps), "µs/step")
}
