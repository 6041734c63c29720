package primitive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// operators are one of each operator on two workers, with their inputs.
func operators(world *partition.Partition) (map[string]primitive.Operator[float32], map[string]*primitive.Tensor[float32], error) {
	ops, inputs := make(map[string]primitive.Operator[float32]), make(map[string]*primitive.Tensor[float32])
	one := primitive.Halo{Left: 1, Right: 1}
	for _, o := range []struct {
		name  string
		build made[float32]
	}{
		{"all_sum_reduce", allSumReduce[float32](all(2), []int{0}, 6, 8)},
		{"broadcast", broadcast[float32](all(1), all(2), nil, 6, 8)},
		{"sum_reduce", sumReduce[float32](all(2), all(1), nil, 6, 8)},
		{"repartition", repartition[float32](all(2, 1), all(1, 2), 6, 8)},
		{"halo_exchange", haloExchange[float32](grid{all(1, 2), [][]primitive.Halo{{one}, {one, one}}, []int{6, 8}})},
		{"all_gather", allGather[float32](all(2), 0, 1, []int{6, 8})},
		{"reduce_scatter", reduceScatter[float32](all(2), 0, 1, []int{6, 8})},
	} {
		var err error
		if ops[o.name], inputs[o.name], err = o.build(world); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return ops, inputs, nil
}

// names are the operators in one order, for calls that all workers make.
var names = []string{"all_sum_reduce", "broadcast", "sum_reduce", "repartition", "halo_exchange", "all_gather", "reduce_scatter"}

// A warm operator allocates nothing, in either direction, also with tensors whose elements do not lie
// next to each other.
func TestAllocations(t *testing.T) {
	for _, strided := range []bool{false, true} {
		everyWorld(t, 2, func(world *partition.Partition) error {
			ops, inputs, err := operators(world)
			if err != nil {
				return err
			}
			var errs []error
			for _, name := range names {
				op, x := ops[name], inputs[name]
				if strided && x != nil {
					wide := primitive.NewTensor[float32](x.Shape()[0], x.Shape()[1]+2)
					x = wide.Slice(ccl.Range{Lo: 0, Hi: x.Shape()[0]}, ccl.Range{Lo: 1, Hi: 1 + x.Shape()[1]})
				}
				y, err := op.Forward(bg, nil, x)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				back, err := op.Adjoint(bg, nil, y)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				calls := func() {
					_, err := op.Forward(bg, y, x)
					_, err2 := op.Adjoint(bg, back, y)
					if err != nil || err2 != nil {
						panic(errors.Join(err, err2))
					}
				}
				for range 50 {
					calls()
				}
				// Both workers count what both allocate, for as many calls; some are of the runtime.
				if n := testing.AllocsPerRun(200, calls); n >= 1 {
					errs = append(errs, fmt.Errorf("%s allocates %v times a call", name, n))
				}
			}
			return errors.Join(errs...)
		})
	}
}

// Workers that make different calls, or bring different shapes, all get an error, and the operator stays
// usable.
func TestMistakes(t *testing.T) {
	texts := golden.Errors(t)
	type calls func(ops map[string]primitive.Operator[float32], inputs map[string]*primitive.Tensor[float32], rank int) error
	call := func(op primitive.Operator[float32], adjoint bool, x *primitive.Tensor[float32]) error {
		f := op.Forward
		if adjoint {
			f = op.Adjoint
		}
		_, err := f(bg, nil, x)
		return err
	}
	shapes := func(name string, adjoint bool, shapes ...[]int) calls {
		return func(ops map[string]primitive.Operator[float32], _ map[string]*primitive.Tensor[float32], rank int) error {
			var x *primitive.Tensor[float32]
			if shapes[rank] != nil {
				x = primitive.NewTensor[float32](shapes[rank]...)
			}
			return call(ops[name], adjoint, x)
		}
	}
	for want, c := range map[string]calls{
		"ranks disagree on call: forward on rank 0; adjoint on rank 1": func(ops map[string]primitive.Operator[float32], inputs map[string]*primitive.Tensor[float32], rank int) error {
			return call(ops["all_sum_reduce"], rank == 1, inputs["all_sum_reduce"])
		},
		"ranks disagree on shape: [2 3] on rank 0; [3 2] on rank 1":                                                   shapes("all_sum_reduce", false, []int{2, 3}, []int{3, 2}),
		"all_sum_reduce: rank 1 of the group of workers [0 1] passes no tensor, and has a part of the input":          shapes("all_sum_reduce", true, []int{2, 3}, nil),
		"ranks disagree on shape: [2] on rank 0; [2 1] on rank 1":                                                     shapes("sum_reduce", false, []int{2}, []int{2, 1}),
		"sum_reduce: rank 0 of the group of workers [0 1] passes no tensor, and has a part of the input":              shapes("sum_reduce", true, nil, nil),
		"sum_reduce: rank 1 of the group of workers [0 1] passes a tensor of shape [2], and has no part of the input": shapes("sum_reduce", true, []int{2}, []int{2}),
		"broadcast: rank 1 of the group of workers [0 1] passes a tensor of shape [2], and has no part of the input":  shapes("broadcast", false, []int{2}, []int{2}),
		"broadcast: rank 0 of the group of workers [0 1] passes no tensor, and has a part of the input":               shapes("broadcast", false, nil, nil),
		"ranks disagree on shape: [4 4] on rank 0; [5 4] on rank 1":                                                   shapes("all_gather", false, []int{4, 4}, []int{5, 4}),
		"ranks disagree on shape: [4 4] on rank 0; [4 4 1] on rank 1":                                                 shapes("all_gather", false, []int{4, 4}, []int{4, 4, 1}),
		"all_gather: rank 0 of the group of workers [0 1] has 2 of 5 elements in dimension 1, and its part is 3":      shapes("all_gather", false, []int{4, 2}, []int{4, 3}),
		"all_gather: the tensor [4] of rank 0 of the group of workers [0 1] has no dimension 1":                       shapes("all_gather", false, []int{4}, []int{4, 3}),
		"reduce_scatter: the tensor [] of rank 1 of the group of workers [0 1] has no dimension 1":                    shapes("reduce_scatter", false, []int{4, 3}, []int{}),
		"ranks disagree on shape: [4 3] on rank 0; [4 2] on rank 1":                                                   shapes("all_gather", true, []int{4, 3}, []int{4, 2}),
	} {
		t.Run(want, func(t *testing.T) {
			everyWorld(t, 2, func(world *partition.Partition) error {
				ops, inputs, err := operators(world)
				if err != nil {
					return err
				}
				err = c(ops, inputs, world.Rank())
				texts.Add(want, err)
				var wrong *ccl.InvalidArgumentError
				var differs *ccl.MismatchError
				if !errors.As(err, &wrong) && !errors.As(err, &differs) || !strings.Contains(err.Error(), want) {
					return fmt.Errorf("got %w", err)
				}
				var errs []error
				for _, name := range names {
					_, err := ops[name].Forward(bg, nil, inputs[name])
					errs = append(errs, err, ops[name].Close(), ops[name].Close())
				}
				return errors.Join(errs...)
			})
		})
	}
}

// Operators that were made with different dimensions, or are different ones, are found by all workers.
func TestDifferentOperators(t *testing.T) {
	everyWorld(t, 2, func(world *partition.Partition) error {
		lines, err := primitive.NewAllGather[float32](bg, world, 0, world.Rank())
		if err != nil {
			return err
		}
		_, dims := lines.Forward(bg, nil, primitive.NewTensor[float32](4, 4))
		var mixed primitive.Operator[float32]
		if world.Rank() == 0 {
			mixed, err = primitive.NewAllSumReduce[float32](bg, world, 0)
		} else {
			mixed, err = primitive.NewReduceScatter[float32](bg, world, 0, 0)
		}
		if err != nil {
			return err
		}
		_, kinds := mixed.Forward(bg, nil, primitive.NewTensor[float32](4, 4))
		var types error
		if world.Rank() == 0 {
			types = sumOf[int64](world)
		} else {
			types = sumOf[float64](world)
		}
		for want, err := range map[string]error{
			"of workers [0 1]: ranks disagree on operator: all_gather in dimension 0 on rank 0; all_gather in dimension 1 on rank 1":         dims,
			"of workers [0 1]: ranks disagree on operator: all_sum_reduce in dimension 0 on rank 0; reduce_scatter in dimension 0 on rank 1": kinds,
			"of workers [0 1]: ranks disagree on dtype: int64 on rank 0; float64 on rank 1":                                                  types,
		} {
			var m *ccl.MismatchError
			if !errors.As(err, &m) || !strings.HasSuffix(err.Error(), want) {
				return fmt.Errorf("got %w, want %s", err, want)
			}
		}
		return nil
	})
}

func sumOf[T primitive.Number](p *partition.Partition) error {
	op, err := primitive.NewAllSumReduce[T](bg, p, 0)
	if err != nil {
		return err
	}
	_, err = op.Forward(bg, nil, primitive.NewTensor[T](3))
	return errors.Join(err, op.Close())
}

// A worker that fails at any moment, also between the exchange of shapes and that of cells, is the error of
// all workers.
func TestHaloExchangeEndsHalfway(t *testing.T) {
	everyWorld(t, 4, func(world *partition.Partition) error {
		for left := range 12 {
			op, err := primitive.NewHaloExchange[float32](bg, world, primitive.Halo{Left: 1, Right: 1})
			if err != nil {
				return err
			}
			ctx := bg
			if world.Rank() == 3 {
				ctx = &endsLater{Context: bg, left: left}
			}
			x := primitive.NewTensor[float32](4)
			for range 100 {
				if _, err = op.Forward(ctx, x, x); err != nil {
					break
				}
			}
			if err == nil {
				return errors.New("no error")
			}
			if err := world.Communicator().Barrier(bg); err != nil { // no worker learns of it by a Close
				return err
			}
			if err := op.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

// endsLater is a context that ends after its error was looked at some times.
type endsLater struct {
	context.Context
	left int
}

func (c *endsLater) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A worker that has no part of the input, nor of any group, learns that it passes a tensor nevertheless.
func TestTensorOfAnIdleWorker(t *testing.T) {
	everyWorld(t, 3, func(world *partition.Partition) error {
		op, x, err := broadcast[float32](all(1), all(2), nil, 4)(world)
		if err != nil {
			return err
		}
		if world.Rank() == 2 {
			x = primitive.NewTensor[float32](4)
		}
		_, err = op.Forward(bg, nil, x)
		if world.Rank() == 2 {
			return isWrong(err, "this worker passes a tensor of shape [4], and has no part of the input")
		}
		return err
	})
}

// Constructors refuse what the partitions do not have.
func TestConstructorMistakes(t *testing.T) {
	everyWorld(t, 2, func(world *partition.Partition) error {
		_, noAxis := primitive.NewAllSumReduce[float32](bg, world, 1)
		_, noAxis2 := primitive.NewAllGather[float32](bg, world, 1, 0)
		_, noDim := primitive.NewReduceScatter[float32](bg, world, 0, -1)
		two, err := world.Cartesian(bg, 2, 1)
		if err != nil {
			return err
		}
		_, larger := primitive.NewBroadcast[float32](bg, two, world)
		return errors.Join(
			isWrong(noAxis, "axis 1 is not a dimension of the shape [2] (0 to 0)"),
			isWrong(noAxis2, "axis 1 is not a dimension of the shape [2] (0 to 0)"),
			isWrong(noDim, "dimension -1 of tensors: from 0 to 13 are possible"),
			isWrong(larger, "the shape [2 1] has more dimensions than [2]"),
		)
	})
}

// A partition that is zero or nil is inactive everywhere: operators have nothing to do.
func TestInactiveEverywhere(t *testing.T) {
	inactiveEverywhere(t, &partition.Partition{})
	inactiveEverywhere(t, nil)
}

func inactiveEverywhere(t *testing.T, p *partition.Partition) {
	_, err := primitive.NewHaloExchange[float32](bg, p)
	require.NoError(t, err)
	_, err = primitive.NewAllGather[float32](bg, p, 0, 0)
	require.NoError(t, err)
	_, err = primitive.NewReduceScatter[float32](bg, p, 0, 0)
	require.NoError(t, err)
	op, err := primitive.NewAllSumReduce[float32](bg, p, 0)
	require.NoError(t, err)
	y, err := op.Forward(bg, nil, nil)
	require.NoError(t, err)
	require.Equal(t, 0, y.Len())
	again, err := op.Adjoint(bg, y, nil)
	require.NoError(t, err)
	require.Same(t, y, again)
	require.NoError(t, op.Close())
}
