package dist_test

import (
	"fmt"

	"github.com/goccl/goccl/dist"
)

// Other ranks need not know the length of the slice.
func ExampleBroadcastObject() {
	run(func(rank int) error {
		var names []string
		if rank == 0 {
			names = []string{"loss", "accuracy"}
		}
		if err := dist.BroadcastObject(&names, 0); err != nil {
			return err
		}
		if rank == 2 {
			fmt.Println(names)
		}
		return nil
	})
	// Output: [loss accuracy]
}

func ExampleAllGatherObject() {
	run(func(rank int) error {
		all, err := dist.AllGatherObject(map[string]int{"rank": rank})
		if err != nil {
			return err
		}
		if rank == 1 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [map[rank:0] map[rank:1] map[rank:2]]
}

func ExampleGatherObject() {
	run(func(rank int) error {
		all, err := dist.GatherObject(fmt.Sprintf("rank %d was here", rank), 0)
		if err != nil {
			return err
		}
		for _, text := range all { // empty on other ranks
			fmt.Println(text)
		}
		return nil
	})
	// Output:
	// rank 0 was here
	// rank 1 was here
	// rank 2 was here
}

func ExampleScatterObject() {
	run(func(rank int) error {
		var jobs []string
		if rank == 0 {
			jobs = []string{"read", "train", "write"}
		}
		job, err := dist.ScatterObject(jobs, 0)
		if err != nil {
			return err
		}
		if rank == 1 {
			fmt.Println(job)
		}
		return nil
	})
	// Output: train
}

func ExampleAllToAllObject() {
	run(func(rank int) error {
		var notes []string
		for to := range 3 {
			notes = append(notes, fmt.Sprintf("from %d to %d", rank, to))
		}
		received, err := dist.AllToAllObject(notes)
		if err == nil && rank == 1 {
			fmt.Println(received)
		}
		return err
	})
	// Output: [from 0 to 1 from 1 to 1 from 2 to 1]
}

func ExampleSendObject() {
	run(func(rank int) error {
		if rank == 2 {
			return dist.SendObject(map[string]float64{"loss": 0.25}, 0, 0)
		}
		if rank == 0 {
			metrics, source, err := dist.RecvObject[map[string]float64](dist.AnySource, 0)
			if err != nil {
				return err
			}
			fmt.Println(metrics, "from", source)
		}
		return nil
	})
	// Output: map[loss:0.25] from 2
}
