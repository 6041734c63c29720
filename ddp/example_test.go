package ddp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// With Options.Shard each rank has state for a part of the parameters, and updates this part.
func ExampleStep() {
	err := dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		group, err := dist.Default()
		if err != nil {
			return err
		}

		weight := []float32{1, 2, 3, 4}
		model, err := ddp.New(ctx, group, []ddp.Parameter{ddp.Param("weight", weight, nil)}, ddp.Options{Shard: true})
		if err != nil {
			return err
		}
		momentum, err := ddp.NewOptimizerState[float32](model, "momentum")
		if err != nil {
			return err
		}

		for range 2 {
			copy(ddp.Grad[float32](model, 0), []float32{1, 1, 2, 2}) // backward
			model.Ready(0)
			if err := model.Wait(ctx); err != nil {
				return err
			}
			err := ddp.Step(ctx, model, func(p ddp.Part[float32]) {
				m := momentum[p.Parameter] // as long as p.Values
				for i, g := range p.Gradient {
					m[i] = 0.5*m[i] + g
					p.Values[i] -= 0.5 * m[i]
				}
			})
			if err != nil {
				return err
			}
		}
		if rank == 0 {
			fmt.Println(weight, "with state of", len(momentum[0]))
		}
		return model.Close()
	}, dist.WithRanks(2))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [-0.25 0.75 0.5 1.5] with state of 2
}
