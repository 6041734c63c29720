package ccl_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	_ "github.com/goccl/goccl/algorithms/direct"
	_ "github.com/goccl/goccl/algorithms/ring"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
)

func TestSmoke(t *testing.T) {
	for name, open := range map[string]func(n int) []transport.Endpoint{
		"poll": func(n int) []transport.Endpoint { return local.NewWaiting(n, local.Poll) },
		"park": func(n int) []transport.Endpoint { return local.NewWaiting(n, local.Park) },
		"heap": func(n int) []transport.Endpoint {
			eps, err := shm.NewHeap(n, shm.DefaultGeometry())
			if err != nil {
				t.Fatal(err)
			}
			return eps
		},
		"tiny": func(n int) []transport.Endpoint {
			eps, err := shm.NewHeap(n, shm.SmallestGeometry(n))
			if err != nil {
				t.Fatal(err)
			}
			return eps
		},
	} {
		for _, alg := range []string{"direct", "ring"} {
			for _, R := range []int{1, 2, 3, 4, 7, 8} {
				for _, n := range []int{1, 2, 3, 7, 100, 1000, 50000} {
					t.Run(fmt.Sprintf("%s/%s/%d/%d", name, alg, R, n), func(t *testing.T) {
						eps := open(R)
						var wg sync.WaitGroup
						start := time.Now()
						for r := range R {
							wg.Go(func() {
								c, err := ccl.New(context.Background(), eps[r])
								if err != nil {
									t.Error(err)
									return
								}
								defer c.Close()
								x := make([]float32, n)
								for it := range 5 {
									for i := range x {
										x[i] = float32((r + 1) * (i + it))
									}
									if err := ccl.AllReduce(context.Background(), c, x, x, ccl.Sum, ccl.WithAlgorithm(alg)); err != nil {
										t.Error(err)
										return
									}
									for i := range x {
										want := float32(0)
										for q := range R {
											want += float32((q + 1) * (i + it))
										}
										if d := x[i] - want; d > 1e-6*want || d < -1e-6*want {
											t.Errorf("rank %d: x[%d]=%v want %v", r, i, x[i], want)
											return
										}
									}
									if r == R-1 {
										for i := range x {
											x[i] = float32(i)
										}
									}
									if err := ccl.Broadcast(context.Background(), c, x, R-1, ccl.WithAlgorithm(alg)); err != nil {
										t.Error(err)
										return
									}
									for i := range x {
										if x[i] != float32(i) {
											t.Errorf("bcast rank %d: x[%d]=%v", r, i, x[i])
											return
										}
									}
									if err := c.Barrier(context.Background()); err != nil {
										t.Error(err)
									}
								}
							})
						}
						wg.Wait()
						if d := time.Since(start); d > time.Second {
							t.Log("slow", d)
						}
					})
				}
			}
		}
	}
}
