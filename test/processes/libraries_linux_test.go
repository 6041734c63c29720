package processes

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// operators moves tensors forward and back by an operator that is made at the first time. The ranks of
// its groups are those of all.
func (w *place) operators() ([]int, error) {
	ctx := context.Background()
	if w.operator == nil {
		var err error
		if w.operator, err = w.newOperator(ctx); err != nil {
			return w.all.Ranks(), err
		}
	}
	x := primitive.NewTensor[float32](w.size*w.size, len(w.vector())/w.size/w.size+w.size)
	y, err := w.operator.Forward(ctx, nil, x)
	if err == nil {
		_, err = w.operator.Adjoint(ctx, nil, y)
	}
	return w.all.Ranks(), err
}

func (w *place) newOperator(ctx context.Context) (primitive.Operator[float32], error) {
	var err error
	if w.world, err = partition.New(ctx, w.all.Communicator()); err != nil {
		return nil, err
	}
	rows, err1 := w.world.Cartesian(ctx, w.size, 1)
	columns, err2 := w.world.Cartesian(ctx, 1, w.size)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	switch w.IntN(5) {
	case 0:
		return primitive.NewAllSumReduce[float32](ctx, rows, 0)
	case 1:
		return primitive.NewRepartition[float32](ctx, rows, columns)
	case 2:
		return primitive.NewHaloExchange[float32](ctx, rows, primitive.Halo{Left: 1, Right: 1}, primitive.Halo{})
	case 3:
		return primitive.NewAllGather[float32](ctx, rows, 0, 0)
	default:
		return primitive.NewReduceScatter[float32](ctx, rows, 0, 0)
	}
}

// trains makes a step of a training; the Reducer is made at the first time. Some steps begin while the victim
// lives, with buckets that are reduced beside each other's gradients.
func (w *place) trains() ([]int, error) {
	ctx := context.Background()
	if w.reducer == nil {
		var params []ddp.Parameter
		for i := range 5 {
			params = append(params, ddp.Param(fmt.Sprint("p", i), w.vector(), nil))
		}
		var err error
		if w.reducer, err = ddp.New(ctx, w.all, params, ddp.Options{FirstBucketBytes: 1, BucketBytes: 1 << 20, FindUnused: w.IntN(2) == 0}); err != nil {
			return w.all.Ranks(), err
		}
	}
	for i := range 5 {
		w.reducer.Ready(4 - i)
	}
	return w.all.Ranks(), w.reducer.Wait(ctx)
}

// close gives back what operators and trains made.
func (w *place) close() error {
	var err error
	if w.operator != nil {
		err = w.operator.Close()
	}
	if w.reducer != nil {
		err = errors.Join(err, w.reducer.Close())
	}
	return errors.Join(err, w.world.Close())
}
