package disttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// train is a loop of package ddp with one parameter, whose gradient is the rank's number.
func train(ctx context.Context, rank int) error {
	if err := dist.InitProcessGroup("ccl"); err != nil {
		return err
	}
	all, err := dist.Default()
	if err != nil {
		return err
	}
	weight, gradient := []float32{float32(rank)}, make([]float32, 1)
	model, err := ddp.New(ctx, all, []ddp.Parameter{ddp.Param("weight", weight, gradient)}, ddp.Options{})
	if err != nil {
		return err
	}
	for range 3 {
		gradient[0] = float32(rank)
		model.Ready(0)
		if err := model.Wait(ctx); err != nil {
			return err
		}
		weight[0] -= gradient[0]
	}
	if weight[0] != -3 {
		return fmt.Errorf("the weight is %v, want -3", weight[0])
	}
	return dist.DestroyProcessGroup()
}

func TestSeeds(t *testing.T) { Seeds(t, 3, train) }
