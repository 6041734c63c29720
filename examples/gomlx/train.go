package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	mltrain "github.com/gomlx/gomlx/pkg/ml/train"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
)

// job configures the training; it is the same on every rank.
type job struct {
	epochs    int
	batch     int    // samples per step of all ranks together, rounded up to a multiple of the ranks
	seed      uint64 // of the initial weights and the order of the samples
	optimizer mltrain.OptimizeWithGradients
}

// result is the result of a training, the same on every rank.
type result struct {
	losses   []float32 // of every step, mean over all ranks
	accuracy float64   // share of the test set classified correctly
	weights  string    // SHA-256 of this rank's trained variables
}

// train is the work of one rank, which writes its progress to out.
func train(ctx context.Context, j job, trainSet, testSet digits.Set[float32], out io.Writer) (*result, error) {
	if err := dist.InitProcessGroup("ccl"); err != nil {
		return nil, err
	}
	group, err := dist.Default()
	if err != nil {
		return nil, err
	}
	rank, ranks := group.Rank(), group.Size()

	// Each rank has a backend of its own, also in one process: backends have no common state. The
	// ranks run in parallel, so each runs the operations of a graph one after the other. (The
	// default, to run them in parallel, has data races in this version.) Only products of large
	// matrices are still divided among the cores that the process may use; goccl run gives each
	// process its own.
	backend, err := simplego.New("ops_sequential")
	if err != nil {
		return nil, err
	}
	vars := mlctx.New()
	if err := vars.SetRNGStateFromSeed(int64(j.seed) + int64(rank)); err != nil { // all ranks get rank 0's weights
		return nil, err
	}
	loader := ddp.Loader[batch]{
		Sampler: ddp.Sampler{Samples: trainSet.Len(), Ranks: ranks, Rank: rank, Seed: j.seed},
		Batch:   (j.batch + ranks - 1) / ranks,
		Load:    func(_ context.Context, indices []int) (batch, error) { return batchOf(trainSet.Pick(indices)), nil },
	}
	model, err := newTrainer(ctx, backend, vars, lossOf, j.optimizer, batchOf(trainSet.Slice(0, 1)))
	if err != nil {
		return nil, err
	}

	done := new(result)
	for epoch := range j.epochs {
		first := len(done.losses)
		for b, err := range loader.Epoch(ctx, epoch, 0) {
			if err != nil {
				return nil, err
			}

			loss, err := model.step(ctx, b)
			if err != nil {
				return nil, err
			}
			done.losses = append(done.losses, loss)
		}
		if err := dist.AllReduce(done.losses[first:], dist.Avg); err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "epoch %2d: loss %.4f\n", epoch+1, mean(done.losses[first:]))
	}

	if done.accuracy, err = test(backend, vars, testSet); err != nil {
		return nil, err
	}
	if done.weights, err = sameOnAllRanks(vars); err != nil {
		return nil, err
	}
	return done, errors.Join(model.reducer.Close(), dist.DestroyProcessGroup())
}

// test returns the share of a set that the model classifies correctly.
func test(backend backends.Backend, vars *mlctx.Context, set digits.Set[float32]) (float64, error) {
	all := batchOf(set)
	right, err := mlctx.ExecOnce(backend, vars.Reuse(), correct, all.images, all.labels)
	if err != nil {
		return 0, err
	}
	return float64(tensors.ToScalar[int64](right)) / float64(set.Len()), nil
}

// sameOnAllRanks returns the SHA-256 of the trained variables, or an error on all ranks if they
// differ.
func sameOnAllRanks(vars *mlctx.Context) (string, error) {
	hash := sha256.New()
	for v := range vars.IterVariables() {
		if !v.Trainable {
			continue
		}
		if err := v.MustValue().ConstBytes(func(data []byte) { hash.Write(data) }); err != nil {
			return "", err
		}
	}

	hashed := fmt.Sprintf("%x", hash.Sum(nil))
	all, err := dist.AllGatherObject(hashed)
	if err != nil {
		return "", err
	}
	if slices.Min(all) != slices.Max(all) {
		return "", fmt.Errorf("the weights of the ranks differ: their hashes are %.16q", all)
	}
	return hashed, nil
}

func mean(values []float32) (sum float64) {
	for _, v := range values {
		sum += float64(v) / float64(len(values))
	}
	return sum
}
