package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// model is what each of two ranks has in an example: one parameter, w, and its gradient.
type model struct {
	*ddp.Reducer

	rank    int
	w, grad []float32
}

// onTwoRanks runs an example on two ranks.
func onTwoRanks(work func(ctx context.Context, m *model) error, opts ddp.Options) {
	err := dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		group, err := dist.Default()
		if err != nil {
			return err
		}
		m := &model{rank: rank, w: make([]float32, 2), grad: make([]float32, 2)}
		m.Reducer, err = ddp.New(ctx, group, []ddp.Parameter{ddp.Param("w", m.w, m.grad)}, opts)
		if err != nil {
			return err
		}
		return errors.Join(work(ctx, m), dist.DestroyProcessGroup())
	}, dist.WithRanks(2))
	if err != nil {
		log.Fatal(err)
	}
}

// printOnce prints on rank 0.
func (m *model) printOnce(values ...any) {
	if m.rank == 0 {
		fmt.Println(values...)
	}
}

// Two small batches make one step: only the second communicates.
func ExampleReducer_NoSync() {
	onTwoRanks(func(ctx context.Context, m *model) error {
		err := m.NoSync(func() error {
			m.grad[0] += 1 // backward of the first batch
			m.Ready(0)
			return m.Wait(ctx)
		})
		m.grad[0] += float32(m.rank) // backward of the second
		m.Ready(0)
		err = errors.Join(err, m.Wait(ctx))
		m.printOnce("mean of 1+0 and 1+1:", m.grad[0])
		return err
	}, ddp.Options{})
	// Output: mean of 1+0 and 1+1: 1.5
}

// Rank 1 has a batch more than rank 0, which gets the parameters that rank 1 has at the end.
func ExampleReducer_Join() {
	gradients := [2][]float32{{1}, {3, 5}} // of the batches of each rank
	onTwoRanks(func(ctx context.Context, m *model) error {
		err := m.Join(ctx, func() error {
			for _, gradient := range gradients[m.rank] {
				m.grad[0] = gradient // backward
				m.Ready(0)
				if err := m.Wait(ctx); err != nil {
					return err
				}
				m.w[0] -= m.grad[0]
			}
			return nil
		})
		m.printOnce("0 - mean of 1 and 3 - 5:", m.w[0])
		return err
	}, ddp.Options{})
	// Output: 0 - mean of 1 and 3 - 5: -7
}

// The norm is that of all gradients, after Wait, and equal on all ranks.
func ExampleReducer_ClipGradNorm() {
	onTwoRanks(func(ctx context.Context, m *model) error {
		m.grad[0], m.grad[1] = 3, 4 // backward
		m.Ready(0)
		if err := m.Wait(ctx); err != nil {
			return err
		}
		norm, err := m.ClipGradNorm(1)
		m.printOnce("norm", norm, "becomes 1:", fmt.Sprintf("%.3f", m.grad))
		return err
	}, ddp.Options{})
	// Output: norm 5 becomes 1: [0.600 0.800]
}

// A training goes on from the epoch and the parameters of its checkpoint.
func ExampleReducer_Save() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "model.safetensors")
	type progress struct{ Epoch int }
	onTwoRanks(func(ctx context.Context, m *model) error {
		m.w[0] = 2.5 // training
		if err := m.Save(ctx, path, progress{Epoch: 3}); err != nil {
			return err
		}
		m.w[0] = 0 // another run of the program
		var at progress
		err := m.Load(ctx, path, &at)
		m.printOnce("epoch", at.Epoch, "w", m.w[0])
		return err
	}, ddp.Options{})
	// Output: epoch 3 w 2.5
}

// An optimizer that depends on the rank lets the parameters drift apart.
func ExampleReducer_Verify() {
	onTwoRanks(func(ctx context.Context, m *model) error {
		m.w[0] -= 0.1 * float32(m.rank)
		if mismatch, ok := errors.AsType[*dist.MismatchError](m.Verify(ctx)); ok {
			m.printOnce("ranks differ in", mismatch.Field)
		}
		return nil
	}, ddp.Options{})
	// Output: ranks differ in parameter 0
}

// sums is a hook that gives buckets the sum of all ranks, in place of the mean.
type sums struct{}

func (sums) Start(b *ddp.Bucket[float32]) *ccl.Work {
	work := new(ccl.Work) // it has the error as well
	_ = ccl.AllReduce(context.Background(), b.Comm, b.Gradients, b.Gradients, ccl.Sum, ccl.WithWork(work))
	return work
}

func (sums) Finish(*ddp.Bucket[float32]) error { return nil }

// A hook replaces the all-reduce of the buckets of a type.
func ExampleHook() {
	onTwoRanks(func(ctx context.Context, m *model) error {
		m.grad[0] = 1 + float32(m.rank) // backward
		m.Ready(0)
		err := m.Wait(ctx)
		m.printOnce("1 + 2 =", m.grad[0])
		return err
	}, ddp.Options{Hooks: ddp.Hooks{Float32: sums{}}})
	// Output: 1 + 2 = 3
}

// A rank loads the next batch while it works with this one.
func ExampleLoader() {
	loader := ddp.Loader[[]int]{
		Sampler: ddp.Sampler{Samples: 7, Ranks: 2, Rank: 1, InOrder: true, Uneven: true},
		Batch:   2,
		Load:    func(_ context.Context, indices []int) ([]int, error) { return indices, nil },
	}
	for batch, err := range loader.Epoch(context.Background(), 0, 0) {
		fmt.Println(batch, err)
	}
	// Output:
	// [1 3] <nil>
	// [5] <nil>
}

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
