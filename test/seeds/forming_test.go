//go:build interleave

package seeds

import (
	"context"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// formings are the ways to form groups of three ranks. In each of the new groups rank 1 is the same.
var formings = map[string]func(ctx context.Context, c *ccl.Communicator) ([]*ccl.Communicator, error){
	"NewGroup": func(ctx context.Context, c *ccl.Communicator) ([]*ccl.Communicator, error) {
		made, err := c.NewGroup(ctx, []int{0, 1})
		return []*ccl.Communicator{made}, err
	},
	"Split": func(ctx context.Context, c *ccl.Communicator) ([]*ccl.Communicator, error) {
		made, err := c.Split(ctx, 0, -c.Rank())
		return []*ccl.Communicator{made}, err
	},
	"Form": func(ctx context.Context, c *ccl.Communicator) ([]*ccl.Communicator, error) {
		return c.Form(ctx, [][]int{{2, 1}, {0, 1}})
	},
}

// If a rank gives up at any step at which a group forms, no other waits for it.
func TestNobodyWaitsForWhoGivesUpWhereGroupsForm(t *testing.T) {
	const ranks = 3
	for name, form := range formings {
		t.Run(name, func(t *testing.T) {
			for step := range 400 {
				r := interleave.Run(t, interleave.Options{Seed: uint64(step), Patience: patience}, func() {
					ctx, cancel := context.WithCancel(context.Background())
					interleave.At(1+step, cancel)
					var end interleave.WaitGroup
					end.Add(ranks)
					each(local.New(ranks), func(rank int, ep transport.Endpoint) {
						within := context.Background()
						if rank == 1 {
							within = ctx
						}
						g, err := ccl.New(context.Background(), ep)
						var made []*ccl.Communicator
						if err == nil {
							made, _ = form(within, g)
						}
						end.Done()
						end.Wait()
						for _, c := range append(made, g) {
							_ = c.Close()
						}
					})
					cancel()
				})
				if r.Finding != nil {
					t.Fatalf("step %d: %v", step, r.Finding)
				}
			}
		})
	}
}
