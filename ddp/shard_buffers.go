package ddp

import (
	"context"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// shardBuffers are the buffers in a step of logical shards. All shards begin with the same ones.
// What a shard changes in those of floats is added up as gradients are, so that an element that no
// shard changes keeps its bits.
type shardBuffers struct {
	before  []elements // with which all shards begin
	kept    []elements // on rank 0, those that the first shard leaves
	changes Bucket[float64]
	hook    folded[float64, float64]
}

// newShardBuffers returns those of a Reducer; nil if it has none, or no logical shards.
func (r *Reducer) newShardBuffers() *shardBuffers {
	t := r.logical.tree
	if t == nil || len(r.opts.Buffers) == 0 {
		return nil
	}
	s := &shardBuffers{hook: folded[float64, float64]{t, "buffers"}}

	count := 0
	for _, b := range r.opts.Buffers {
		s.before, s.kept = append(s.before, b.elements.fresh()), append(s.kept, b.elements.fresh())
		if isFloat(b.elements) {
			count += b.elements.count()
		}
	}
	s.changes = Bucket[float64]{Gradients: make([]float64, max(count, 1)), Comm: r.comm, Op: ccl.AvgOf(t.shards)}
	return s
}

// begin gives a shard the buffers with which the step began.
func (s *shardBuffers) begin(buffers []Tensor, isFirst bool) {
	for i, b := range buffers {
		if isFirst {
			s.before[i].copyFrom(b.elements)
		} else {
			b.elements.copyFrom(s.before[i])
		}
	}
}

// end notes what a shard has changed.
func (s *shardBuffers) end(buffers []Tensor, shard int) {
	at := 0
	for i, b := range buffers {
		if shard == 0 {
			s.kept[i].copyFrom(b.elements)
		}
		if isFloat(b.elements) {
			putChanges(b.elements, s.before[i], s.changes.Gradients[at:])
			at += b.elements.count()
		}
	}

	if shard < s.hook.tree.high-1 {
		s.hook.add(&s.changes, shard)
	}
}

// foldBuffers moves the buffers of floats by the mean over all shards of what these have changed.
// The others, such as counters, become those of the first shard.
func (r *Reducer) foldBuffers(ctx context.Context) error {
	s := r.logical.buffers
	if s == nil {
		return nil
	}

	s.end(r.opts.Buffers, s.hook.tree.high-1)
	if err := r.await(ctx, s.hook.Start(&s.changes)); err != nil {
		return err
	}
	s.changes.Context = ctx
	if err := s.hook.Finish(&s.changes); err != nil {
		return err
	}

	at := 0
	for i, b := range r.opts.Buffers {
		if isFloat(b.elements) {
			b.elements.copyFrom(s.before[i])
			moveBy(b.elements, s.changes.Gradients[at:])
			at += b.elements.count()
			continue
		}

		b.elements.copyFrom(s.kept[i])
		if err := b.elements.broadcast(ctx, r.comm, 0, ccl.WithKey("ddp buffers of shards")); err != nil {
			return err
		}
	}
	return nil
}

// putChanges puts what elements of floats have changed by; of those that were not finite, what they
// are.
func putChanges(now, before elements, to []float64) {
	before.eachFloat(func(i int, x float64) (float64, bool) {
		to[i] = x
		return 0, false
	})
	now.eachFloat(func(i int, x float64) (float64, bool) {
		switch old := to[i]; {
		case old-old != 0:
			to[i] = x
		case x == old:
			to[i] = 0 // not -0
		default:
			to[i] = x - old
		}
		return 0, false
	})
}

// moveBy makes elements of floats, with which shards began, those that have changed so.
func moveBy(before elements, changes []float64) {
	before.eachFloat(func(i int, old float64) (float64, bool) {
		if old-old != 0 {
			return changes[i], true
		}
		return old + changes[i], changes[i] != 0
	})
}

func isFloat(e elements) bool { return slices.Contains(floats, e.dtype()) }

func (v vector[T]) eachFloat(f func(i int, x float64) (y float64, isNew bool)) {
	switch e := any([]T(v)).(type) {
	case []float32:
		eachFloat(e, f)
	case []float64:
		eachFloat(e, f)
	case []half.Float16:
		eachFloat(e, f)
	case []half.BFloat16:
		eachFloat(e, f)
	}
}

func eachFloat[T Float](elements []T, f func(i int, x float64) (y float64, isNew bool)) {
	for i, x := range elements {
		if y, isNew := f(i, toFloat64(x)); isNew {
			elements[i] = fromFloat64[T](y)
		}
	}
}
