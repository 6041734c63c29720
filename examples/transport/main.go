// Command transport adds up numbers of four ranks over a transport of its own, arena, which it
// links by one import. docs/guides/writing-a-transport.md explains it.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/goccl/goccl/dist"
	_ "github.com/goccl/goccl/examples/transport/arena"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run prints the sum of 1, 2, 3 and 4, and what connected the ranks.
func run(out io.Writer) error {
	return dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		sum := []int{rank + 1}
		if err := dist.AllReduce(sum, dist.Sum); err != nil {
			return err
		}

		group, err := dist.Default()
		if err != nil {
			return err
		}
		if rank == 0 {
			fmt.Fprintf(out, "%d, over %s\n", sum[0], group.Communicator().Transport())
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(4))
}
