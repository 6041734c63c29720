package ddp

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
	"github.com/goccl/goccl/internal/reduce"
)

// pairwise is the entry of ccl.yaml whose algorithm logical shards need.
const pairwise = "pairwise"

// adder is a hook that adds up gradients of logical shards.
type adder[T Float] interface {
	// add adds the gradients of one of this rank's shards, which is not the last one.
	add(b *Bucket[T], shard int)
}

// folded is the hook of a type with Options.LogicalShards. Its sums have the type S: that of 16-bit
// floats is rounded once, at the end.
type folded[T Float, S float32 | float64] struct {
	tree *shardTree
	what string // it reduces: "bucket"
}

// newFolded returns the hook of a type.
func newFolded[T Float](tree *shardTree) Hook[T] {
	var hook any
	switch any(*new(T)).(type) {
	case float32:
		hook = folded[float32, float32]{tree, "bucket"}
	case float64:
		hook = folded[float64, float64]{tree, "bucket"}
	case half.Float16:
		hook = folded[half.Float16, float32]{tree, "bucket"}
	case half.BFloat16:
		hook = folded[half.BFloat16, float32]{tree, "bucket"}
	}
	return hook.(Hook[T])
}

// partialSums are those of a bucket.
type partialSums[S float32 | float64] struct {
	asyncCall
	gradients []S   // of the shard; its memory gets the last sum, and then the mean
	before    [][]S // sums before it, as many as depth
	depth     int

	// If the tree is not flat, each rank adds up a part for all ranks, and gathers the others.
	parts          blocksCall
	send, received []S
	sent, expected []int // by rank
}

// sumsOf returns the sums of a bucket, with the gradients of a shard.
func (h folded[T, S]) sumsOf(b *Bucket[T], shard int) *partialSums[S] {
	s, ok := b.State.(*partialSums[S])
	if !ok {
		s = &partialSums[S]{gradients: make([]S, len(b.Gradients))}
		if same, ok := any(b.Gradients).([]S); ok {
			s.gradients = same
		}
		b.State = s
	}
	if shard == h.tree.low {
		s.depth = 0 // also after a step that has failed
	}

	switch g := any(b.Gradients).(type) {
	case []half.Float16:
		for i, x := range g {
			s.gradients[i] = S(x.Float32())
		}
	case []half.BFloat16:
		for i, x := range g {
			s.gradients[i] = S(x.Float32())
		}
	}
	return s
}

func (h folded[T, S]) add(b *Bucket[T], shard int) {
	s := h.sumsOf(b, shard)
	merges := h.tree.merges[shard-h.tree.low]
	if merges == 0 {
		if s.depth == len(s.before) {
			s.before = append(s.before, make([]S, len(s.gradients)))
		}
		copy(s.before[s.depth], s.gradients)
		s.depth++
		return
	}

	last := s.before[s.depth-1]
	reduce.AddSlices(last, last, s.gradients)
	for range merges - 1 {
		s.depth--
		reduce.AddSlices(s.before[s.depth-1], s.before[s.depth-1], s.before[s.depth])
	}
}

// Start adds the gradients of the last shard, and starts to add up what ranks bring.
func (h folded[T, S]) Start(b *Bucket[T]) *ccl.Work {
	t := h.tree
	s := h.sumsOf(b, t.high-1)
	for range t.merges[len(t.merges)-1] {
		s.depth--
		reduce.AddSlices(s.gradients, s.before[s.depth], s.gradients)
	}
	if !t.isFlat {
		return s.exchange(t, b.Comm, h.what, b.Index)
	}
	if s.opts == nil {
		s.opts = append(s.options(h.what, b.Index), ccl.WithAlgorithm(pairwise))
	}
	_ = ccl.AllReduce(context.Background(), b.Comm, s.gradients, s.gradients, b.Op, s.opts...) // the Work has the error as well
	return &s.work
}

// exchange starts to send each rank its part of this rank's sums.
func (s *partialSums[S]) exchange(t *shardTree, c *ccl.Communicator, what string, bucket int) *ccl.Work {
	sums := append(slices.Clone(s.before[:s.depth]), s.gradients)
	if s.parts.counts == nil {
		s.parts.prepare(c, len(s.gradients))
		total := 0
		for rank, n := range s.parts.counts {
			s.sent = append(s.sent, len(sums)*n)
			s.expected = append(s.expected, len(t.sums[rank])*(s.parts.high-s.parts.low))
			total += s.expected[rank]
		}
		s.send, s.received = make([]S, len(sums)*len(s.gradients)), make([]S, total)
	}

	at, low := 0, 0
	for _, n := range s.parts.counts {
		for _, sum := range sums {
			at += copy(s.send[at:], sum[low:low+n])
		}
		low += n
	}
	_ = ccl.AllToAllV(context.Background(), c, s.send, s.sent, nil, s.received, s.expected, nil, s.options(what, bucket)...) // the Work has the error as well
	return &s.work
}

// Finish adds up this rank's part, and gathers the others.
func (h folded[T, S]) Finish(b *Bucket[T]) error {
	s := b.State.(*partialSums[S])
	if !h.tree.isFlat {
		if err := s.gather(b.Context, h.tree, b.Comm, fmt.Sprint("means of ", h.what, " ", b.Index)); err != nil {
			return err
		}
	}

	switch g := any(b.Gradients).(type) {
	case []half.Float16:
		for i, x := range s.gradients {
			g[i] = half.NewFloat16(float32(x))
		}
	case []half.BFloat16:
		for i, x := range s.gradients {
			g[i] = half.NewBFloat16(float32(x))
		}
	}
	return nil
}

func (s *partialSums[S]) gather(ctx context.Context, t *shardTree, c *ccl.Communicator, label string) error {
	part := s.gradients[s.parts.low:s.parts.high]
	var sources [][]S
	var shards []int
	at := 0
	for _, sizes := range t.sums {
		for range sizes {
			sources = append(sources, s.received[at:at+len(part)])
			at += len(part)
		}
		shards = append(shards, sizes...)
	}

	reduce.FoldSlices(part, sources, shards, t.shards)
	return ccl.AllGatherV(ctx, c, part, s.gradients, s.parts.counts, nil, ccl.WithLabel(label), ccl.WithKey("ddp "+label))
}
