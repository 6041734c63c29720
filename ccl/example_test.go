package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// A program with explicit handles: four ranks form two pairs, each pair adds its ranks,
// and one pair sends its sum to the other. With package dist these calls are Split,
// AllReduce with WithGroup(pair), Send and Recv.
func Example() {
	worker := func(ctx context.Context, endpoint transport.Endpoint) error {
		c, err := ccl.New(ctx, endpoint)
		if err != nil {
			return err
		}
		defer c.Close()
		pair, err := c.Split(ctx, c.Rank()/2, 0) // ranks 0 and 1, ranks 2 and 3
		if err != nil {
			return err
		}
		defer pair.Close()
		sum := []int64{int64(c.Rank())}
		if err := ccl.AllReduce(ctx, pair, sum, sum, ccl.Sum); err != nil {
			return err
		}
		const tag = 7
		switch c.Rank() {
		case 2:
			return ccl.Send(ctx, c, sum, 0, tag)
		case 0:
			other := make([]int64, 1)
			_, err := ccl.Recv(ctx, c, other, 2, tag)
			fmt.Println("0+1 is", sum, "and 2+3 is", other)
			return err
		}
		return nil
	}
	var ranks sync.WaitGroup
	for _, endpoint := range local.New(4) {
		ranks.Go(func() {
			if err := worker(context.Background(), endpoint); err != nil {
				fmt.Println(err)
			}
		})
	}
	ranks.Wait()
	// Output: 0+1 is [1] and 2+3 is [5]
}

// onRanks runs f once for each of n connected ranks.
func onRanks(n int, f func(c *ccl.Communicator) error) {
	var wg sync.WaitGroup
	for _, ep := range local.New(n) {
		wg.Go(func() {
			c, err := ccl.New(context.Background(), ep)
			if err != nil {
				fmt.Println(err)
				return
			}
			defer c.Close()
			if err := f(c); err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
}

func ExampleAllReduce() {
	onRanks(4, func(c *ccl.Communicator) error {
		send := []float64{float64(c.Rank()), 1}
		recv := make([]float64, 2)
		if err := ccl.AllReduce(context.Background(), c, send, recv, ccl.Sum); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(recv)
		}
		return nil
	})
	// Output: [6 4]
}

func ExampleAllGatherV() {
	onRanks(3, func(c *ccl.Communicator) error {
		counts := []int{0, 1, 2} // rank r brings r elements
		send := make([]int32, c.Rank())
		for i := range send {
			send[i] = int32(10*c.Rank() + i)
		}
		recv := make([]int32, 3)
		if err := ccl.AllGatherV(context.Background(), c, send, recv, counts, nil); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(recv)
		}
		return nil
	})
	// Output: [10 20 21]
}

func ExampleBroadcast() {
	onRanks(3, func(c *ccl.Communicator) error {
		buf := make([]int64, 2)
		if c.Rank() == 1 {
			buf = []int64{7, 8}
		}
		if err := ccl.Broadcast(context.Background(), c, buf, 1); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(buf)
		}
		return nil
	})
	// Output: [7 8]
}

func ExampleCommunicator_Barrier() {
	var mu sync.Mutex
	entered := 0
	onRanks(4, func(c *ccl.Communicator) error {
		mu.Lock()
		entered++
		mu.Unlock()
		if err := c.Barrier(context.Background()); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(entered, "ranks have entered")
		}
		return nil
	})
	// Output: 4 ranks have entered
}

// If ranks make different calls, the error on every rank names who passed what.
func ExampleMismatchError() {
	onRanks(3, func(c *ccl.Communicator) error {
		buf := make([]float32, 8)
		if c.Rank() == 2 {
			buf = buf[:7]
		}
		err := ccl.AllReduce(context.Background(), c, buf, buf, ccl.Sum)
		if mismatch, ok := errors.AsType[*ccl.MismatchError](err); ok && c.Rank() == 0 {
			fmt.Println(mismatch)
		}
		return nil
	})
	// Output: ranks disagree on count: 8 on ranks 0, 1; 7 on rank 2
}

// A kernel is straight-line code in few verbs. This one sends everything to rank 0,
// which reduces it in rank order and sends the result back.
func ExampleAlgorithm() {
	star := &ccl.Algorithm{
		Name: "star",
		Doc:  "rank 0 folds everything",
		Kernels: map[ccl.Collective]*ccl.Kernel{
			ccl.CollAllReduce: {
				Doc: "gather to rank 0, fold in rank order, send the result back",
				Cost: func(s ccl.Shape) ccl.Cost {
					return ccl.Cost{Steps: s.Ranks, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
				},
				Run: func(c *ccl.Call) error {
					if c.Rank() != 0 {
						if err := c.Send(0, c.In()); err != nil {
							return err
						}
						return c.Recv(0, c.Out())
					}
					sum := c.In()
					for r := 1; r < c.Size(); r++ {
						if err := c.RecvReduce(r, c.Out(), sum); err != nil {
							return err
						}
						sum = c.Out()
					}
					c.Epilogue(c.Out())
					for r := 1; r < c.Size(); r++ {
						if err := c.Send(r, c.Out()); err != nil {
							return err
						}
					}
					return nil
				},
			},
		},
	}
	cfg, err := config.Parse("example.yaml", []byte(`
version: 1
defaults: {algorithm: star}
algorithms: {star: {module: star}}
topology: {kind: ring_1d, count: auto}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	settings, err := cfg.Resolve(config.Request{Registry: ccl.Registry{"star": star}, Ranks: 4})
	if err != nil {
		fmt.Println(err)
		return
	}

	var wg sync.WaitGroup
	for _, ep := range local.New(4) {
		wg.Go(func() {
			ctx := context.Background()
			c, err := ccl.New(ctx, ep, ccl.WithSelector(settings))
			if err != nil {
				fmt.Println(err)
				return
			}
			defer c.Close()
			x := []float64{float64(c.Rank() + 1)}
			if err := ccl.AllReduce(ctx, c, x, x, ccl.Avg); err != nil {
				fmt.Println(err)
			}
			if c.Rank() == 0 {
				fmt.Println(x)
			}
		})
	}
	wg.Wait()
	// Output: [2.5]
}
