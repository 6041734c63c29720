package dist_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// The leader fills a table that all ranks read, and collectives read memory of Alloc without a copy.
func Example_sharedMemory() {
	run(func(rank int) error {
		ctx := context.Background()
		group, err := dist.Default()
		if err != nil {
			return err
		}
		table, err := ccl.CreateSharedRegion[float32](ctx, group.Communicator(), 1<<20)
		if err != nil {
			return err
		}
		defer table.Close()
		for i := range table.LeaderSlice() { // on the leader; nothing on the others
			table.LeaderSlice()[i] = float32(i)
		}
		if err := table.Fence(ctx); err != nil {
			return err
		}
		grads, err := ccl.Alloc[float32](ctx, group.Communicator(), 1<<20)
		if err != nil {
			return err
		}
		copy(grads, table.Slice()) // every rank reads the leader's memory
		if err := dist.AllReduce(grads, dist.Sum); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println("sum of 3 ranks:", grads[1], grads[1000])
		}
		return nil
	})
	// Output: sum of 3 ranks: 3 3000
}
