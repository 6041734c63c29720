package primitivetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
	"github.com/goccl/goccl/primitive"
	"github.com/goccl/goccl/primitive/primitivetest"
)

type tensor = primitive.Tensor[float32]

// function is an operator made of two functions.
type function struct {
	forward, adjoint func(ctx context.Context, out, in *tensor) (*tensor, error)
}

func (f function) Forward(ctx context.Context, y, x *tensor) (*tensor, error) {
	return f.forward(ctx, y, x)
}
func (f function) Adjoint(ctx context.Context, x, y *tensor) (*tensor, error) {
	return f.adjoint(ctx, x, y)
}
func (f function) Close() error { return nil }

// reports are what a test of an operator would fail with.
type reports struct {
	mu   sync.Mutex
	text []string
}

func (*reports) Helper() {}
func (r *reports) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, fmt.Sprintf(format, args...))
}

// halo is the exchange of one ghost cell on each side of the parts of a tensor on 2 x 2 workers.
func halo(world *partition.Partition) (primitive.Operator[float32], *tensor, error) {
	p, err := world.Cartesian(context.Background(), 2, 2)
	if err != nil {
		return nil, nil, err
	}
	one := primitive.Halo{Left: 1, Right: 1}
	op, err := primitive.NewHaloExchange[float32](context.Background(), p, one, one)
	return op, primitive.NewTensor[float32](8, 9), err
}

// Each mutant of a right operator is found, and the operator itself passes.
func TestAdjointFindsMutants(t *testing.T) {
	for name, m := range map[string]struct {
		want   string // the report, "" if there is none
		mutate func(op primitive.Operator[float32], rank int) primitive.Operator[float32]
	}{
		"right": {"", func(op primitive.Operator[float32], _ int) primitive.Operator[float32] { return op }},
		"the adjoint forgets to add at a corner": {"is not the adjoint", func(op primitive.Operator[float32], rank int) primitive.Operator[float32] {
			return function{op.Forward, func(ctx context.Context, x, y *tensor) (*tensor, error) {
				x, err := op.Adjoint(ctx, x, y)
				if err == nil && rank == 0 {
					x.Set(y.At(6, 7), 6, 7) // the corner next to all others, as if nobody had added to it
				}
				return x, err
			}}
		}},
		"the adjoint leaves a ghost cell": {"is not the adjoint", func(op primitive.Operator[float32], rank int) primitive.Operator[float32] {
			return function{op.Forward, func(ctx context.Context, x, y *tensor) (*tensor, error) {
				x, err := op.Adjoint(ctx, x, y)
				if err == nil && rank == 3 {
					x.Set(y.At(0, 3), 0, 3)
				}
				return x, err
			}}
		}},
		"the forward drops a remainder": {"is not the adjoint", func(op primitive.Operator[float32], rank int) primitive.Operator[float32] {
			return function{func(ctx context.Context, y, x *tensor) (*tensor, error) {
				y, err := op.Forward(ctx, y, x)
				if err == nil && rank == 1 {
					y.Set(0, 4, 4)
				}
				return y, err
			}, op.Adjoint}
		}},
		"the forward scales": {"is not the adjoint", func(op primitive.Operator[float32], _ int) primitive.Operator[float32] {
			return function{func(ctx context.Context, y, x *tensor) (*tensor, error) {
				y, err := op.Forward(ctx, y, x)
				if err == nil {
					for i := range 8 * 9 {
						y.Set(y.At(i/9, i%9)*1.001, i/9, i%9)
					}
				}
				return y, err
			}, op.Adjoint}
		}},
		"not a number": {"is not the adjoint", func(op primitive.Operator[float32], rank int) primitive.Operator[float32] {
			return function{func(ctx context.Context, y, x *tensor) (*tensor, error) {
				y, err := op.Forward(ctx, y, x)
				if err == nil {
					zero := float32(0)
					y.Set(zero/zero, 4, 4)
				}
				return y, err
			}, op.Adjoint}
		}},
		"the input changes": {"forward changes its input", func(op primitive.Operator[float32], _ int) primitive.Operator[float32] {
			return function{func(ctx context.Context, y, x *tensor) (*tensor, error) {
				in, err := op.Forward(ctx, x, x)
				if err != nil {
					return nil, err
				}
				if y == nil {
					y = primitive.NewTensor[float32](8, 9)
				}
				return y, y.CopyFrom(in)
			}, op.Adjoint}
		}},
		"the result is always new": {"adjoint does not use the tensor that it is given", func(op primitive.Operator[float32], _ int) primitive.Operator[float32] {
			return function{op.Forward, func(ctx context.Context, _, y *tensor) (*tensor, error) { return op.Adjoint(ctx, nil, y) }}
		}},
		"the result depends on the memory": {"forward returns something else the second time", func(op primitive.Operator[float32], _ int) primitive.Operator[float32] {
			return function{func(ctx context.Context, y, x *tensor) (*tensor, error) {
				before := float32(1)
				if y != nil {
					before = y.At(4, 4) + 1
				}
				y, err := op.Forward(ctx, y, x)
				if err == nil {
					y.Set(before, 4, 4)
				}
				return y, err
			}, op.Adjoint}
		}},
		"another shape": {"the adjoint's result has the shape [72], and the input had [8 9]", func(op primitive.Operator[float32], _ int) primitive.Operator[float32] {
			return function{op.Forward, func(ctx context.Context, x, y *tensor) (*tensor, error) {
				in, err := op.Adjoint(ctx, nil, y)
				if err != nil {
					return nil, err
				}
				if x == nil {
					x = primitive.NewTensor[float32](72)
				}
				for i := range 8 * 9 {
					x.Set(in.At(i/9, i%9), i)
				}
				return x, nil
			}}
		}},
		"nil": {"forward returns nil without an error", func(op primitive.Operator[float32], rank int) primitive.Operator[float32] {
			return function{func(context.Context, *tensor, *tensor) (*tensor, error) { return nil, nil }, op.Adjoint}
		}},
		"an error of one worker": {"worker 2: forward: it went wrong", func(op primitive.Operator[float32], rank int) primitive.Operator[float32] {
			return function{func(ctx context.Context, y, x *tensor) (*tensor, error) {
				if y == nil {
					y = primitive.NewTensor[float32](8, 9)
				}
				if rank == 2 {
					return nil, errors.New("it went wrong")
				}
				return y, nil
			}, func(ctx context.Context, x, y *tensor) (*tensor, error) {
				if x == nil {
					x = primitive.NewTensor[float32](8, 9)
				}
				return x, nil
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			partitiontest.Workers(t, 4, func(ctx context.Context, world *partition.Partition) error {
				all := &reports{}
				op, x, err := halo(world)
				if err != nil {
					return err
				}
				primitivetest.Adjoint(ctx, all, world, m.mutate(op, world.Rank()), x)
				texts, err := partition.AllGatherData(ctx, world, strings.Join(all.text, "\n"))
				if err != nil {
					return err
				}
				joined := strings.TrimSpace(strings.Join(texts, "\n"))
				if m.want == "" && joined != "" || !strings.Contains(joined, m.want) {
					return fmt.Errorf("reported %q, want %q", joined, m.want)
				}
				return nil
			})
		})
	}
}

// After a failure of communication each worker that can reports it.
func TestAdjointWithoutPeers(t *testing.T) {
	partitiontest.Workers(t, 2, func(ctx context.Context, world *partition.Partition) error {
		op, err := primitive.NewAllSumReduce[float32](ctx, world, 0)
		if err != nil {
			return err
		}
		world.Communicator().Abort(errors.New("enough"))
		all := &reports{}
		primitivetest.Adjoint(ctx, all, world, op, primitive.NewTensor[float32](2))
		require.NotEmpty(t, all.text)
		require.Contains(t, all.text[0], "enough")
		return nil
	})
}
