package ddp

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/goccl/goccl/ccl"
)

// Sampler deals out the samples of a data set to ranks (DistributedSampler of torch): rank r gets the samples
// at r, r+Ranks, r+2*Ranks, ... of an order that is the same on all ranks. All ranks get equally many.
type Sampler struct {
	Samples, Ranks, Rank int
	Seed                 uint64 // Seed + epoch gives the order; the same on all ranks
	InOrder              bool   // do not shuffle
	DropLast             bool   // leave out samples that do not fill all ranks, instead of repeating the first ones
}

// Len returns the number of samples of each rank in an epoch.
func (s Sampler) Len() int {
	if s.DropLast {
		return s.Samples / s.Ranks
	}
	return (s.Samples + s.Ranks - 1) / s.Ranks
}

// check returns an error unless Rank is one of Ranks.
func (s Sampler) check() error {
	if s.Rank < 0 || s.Rank >= s.Ranks {
		return &ccl.InvalidArgumentError{Operation: "ddp.Sampler", Message: fmt.Sprintf("Rank is %d of %d Ranks, and must be at least 0 and less than Ranks", s.Rank, s.Ranks)}
	}
	return nil
}

// Indices returns this rank's samples in an epoch. It depends on nothing else than s and the epoch. It panics
// with *ccl.InvalidArgumentError unless 0 <= Rank < Ranks; a Loader returns that error.
func (s Sampler) Indices(epoch int) []int {
	if err := s.check(); err != nil {
		panic(err)
	}
	order := make([]int, s.Samples)
	if s.InOrder {
		for i := range order {
			order[i] = i
		}
	} else {
		order = rand.New(rand.NewPCG(s.Seed+uint64(epoch), 0)).Perm(s.Samples)
	}
	mine := make([]int, s.Len())
	for i := range mine {
		mine[i] = order[(i*s.Ranks+s.Rank)%s.Samples]
	}
	return mine
}

// Loader loads batches of this rank's samples, some of them before they are needed.
type Loader[B any] struct {
	Sampler Sampler
	Batch   int // samples of this rank in a step
	Ahead   int // batches that are loaded before they are needed; 0: one

	// Load returns the batch of some samples. It is called by one goroutine at a time, in order, while the
	// program works with batches that were loaded before.
	Load func(ctx context.Context, indices []int) (B, error)
}

// Steps returns the number of batches in an epoch. The last one may be shorter.
func (l *Loader[B]) Steps() int { return (l.Sampler.Len() + l.Batch - 1) / l.Batch }

// Epoch returns the batches of an epoch from a step on: 0 for all; the number of steps made, to resume. It
// ends with the first error, of Load or of ctx.
func (l *Loader[B]) Epoch(ctx context.Context, epoch, from int) iter.Seq2[B, error] {
	type loaded struct {
		batch B
		err   error
	}
	return func(yield func(B, error) bool) {
		if l.Batch < 1 || from < 0 || l.Sampler.Ranks < 1 {
			var none B
			yield(none, &ccl.InvalidArgumentError{Operation: "ddp.Loader", Message: fmt.Sprintf("Batch is %d, Sampler.Ranks %d and the first step %d: at least 1, 1 and 0 are needed", l.Batch, l.Sampler.Ranks, from)})
			return
		}
		if err := l.Sampler.check(); err != nil {
			var none B
			yield(none, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		batches := make(chan loaded, max(l.Ahead, 1)-1) // one more waits to be sent
		defer func() {
			cancel()
			for range batches { // until the goroutine has ended
			}
		}()
		go func() {
			defer close(batches)
			indices := l.Sampler.Indices(epoch)
			for at := from * l.Batch; at < len(indices); at += l.Batch {
				var next loaded
				if next.err = context.Cause(ctx); next.err == nil {
					next.batch, next.err = l.Load(ctx, indices[at:min(at+l.Batch, len(indices))])
				}
				select {
				case batches <- next:
				case <-ctx.Done():
					return
				}
				if next.err != nil {
					return
				}
			}
		}()
		for b := range batches {
			if !yield(b.batch, b.err) || b.err != nil {
				return
			}
		}
		if err := context.Cause(ctx); err != nil {
			var none B
			yield(none, err)
		}
	}
}
