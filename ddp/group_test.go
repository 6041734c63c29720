package ddp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// world returns the default group.
func world() *dist.ProcessGroup {
	g, err := dist.Default()
	if err != nil {
		panic(err)
	}
	return g
}

// A rank that is no member of a group passes the nil of NewGroup: New refuses it, and does not join
// the Reducer of all ranks, which would take the member's collective.
func TestNewOfNoGroup(t *testing.T) {
	all(t, 2, func(rank int) error {
		group, err := dist.NewGroup([]int{0})
		if err != nil {
			return err
		}
		params := []ddp.Parameter{ddp.Param("a", []float64{float64(rank)}, nil)}
		r, err := ddp.New(bg, group, params, ddp.Options{})
		if rank == 0 {
			return errors.Join(err, r.Close())
		}
		var invalid *ccl.InvalidArgumentError
		if !errors.As(err, &invalid) || invalid.Operation != "dist.with_group" || r != nil {
			return fmt.Errorf("got %v, %w", r, err)
		}
		_, err = ddp.New(bg, new(dist.ProcessGroup), params, ddp.Options{})
		if !errors.As(err, &invalid) {
			return fmt.Errorf("the zero group: %w", err)
		}
		return nil
	})
}
