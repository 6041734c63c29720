package launch_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/launch"
)

// The main function of a program that starts itself as four ranks.
func Example() {
	train := func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		loss := []float64{float64(rank)} // every rank has its own
		if err := dist.AllReduce(loss, dist.Avg); err != nil {
			return err
		}
		if err := launch.Return(loss[0]); err != nil {
			return err
		}
		return dist.DestroyProcessGroup()
	}
	if launch.IsRank() { // one of the processes that Run, below, has started
		if err := dist.Spawn(train); err != nil {
			log.Fatal(err)
		}
		return
	}
	job := launch.Job{Ranks: 4, Stdout: os.Stdout, Stderr: os.Stderr}
	ranks, err := job.Run(context.Background())
	for _, r := range ranks {
		fmt.Println(r.Rank, r.Wall, r.Transport, string(r.Value), r.Err)
	}
	if err != nil {
		log.Fatal(err)
	}
}
