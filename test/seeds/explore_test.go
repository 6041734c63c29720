//go:build interleave

package seeds

import (
	"context"
	"errors"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport/local"
)

// Two ranks make a barrier and an all-reduce in every order of their steps that has few preemptions.
func TestExplore(t *testing.T) {
	calls := map[string]func(c *ccl.Communicator, rank int) error{
		"barrier": func(c *ccl.Communicator, _ int) error { return c.Barrier(context.Background()) },
		"all-reduce": func(c *ccl.Communicator, rank int) error {
			send, recv := []float32{float32(rank + 1)}, make([]float32, 1)
			err := ccl.AllReduce(context.Background(), c, send, recv, ccl.Sum)
			if err == nil && recv[0] != 3 {
				err = errors.New("another sum")
			}
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			orders, failed := interleave.Explore(1, func(o interleave.Options) (interleave.Result, bool) {
				r, err := exploreCall(t, o, call)
				if r.Finding != nil {
					err = r.Finding
				}
				if err != nil {
					t.Error(err)
				}
				return r, err == nil
			})
			if failed != nil {
				t.Errorf("choices %v", failed.Choices)
			}
			if orders < 100 {
				t.Errorf("%d orders", orders)
			}
			t.Logf("%d orders", orders)
		})
	}
}

// exploreCall runs a call on two ranks.
func exploreCall(t *testing.T, o interleave.Options, call func(c *ccl.Communicator, rank int) error) (interleave.Result, error) {
	errs := make([]error, 2)
	interleave.SetProcessors(1)
	r := interleave.Run(t, o, func() {
		var all interleave.WaitGroup
		for rank, ep := range local.New(2) {
			all.Go(func() {
				c, err := ccl.New(context.Background(), ep)
				if err == nil {
					err = call(c, rank)
				}
				if err == nil {
					err = c.Close()
				}
				errs[rank] = err
			})
		}
		all.Wait()
	})
	return r, errors.Join(errs...)
}
