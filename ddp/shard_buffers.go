package ddp

import (
	"context"

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
		if b.elements.isFloat() {
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
		if b.elements.isFloat() {
			b.elements.putChanges(s.before[i], s.changes.Gradients[at:])
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
	if err := s.hook.Finish(&s.changes); err != nil {
		return err
	}

	at := 0
	for i, b := range r.opts.Buffers {
		if b.elements.isFloat() {
			b.elements.moveBy(s.before[i], s.changes.Gradients[at:])
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

func (v vector[T]) isFloat() bool {
	switch any([]T(v)).(type) {
	case []float32, []float64, []half.Float16, []half.BFloat16:
		return true
	}
	return false
}

func (v vector[T]) putChanges(before elements, to []float64) {
	old := before.(vector[T])
	switch e := any([]T(v)).(type) {
	case []float32:
		putChanges(e, any([]T(old)).([]float32), to)
	case []float64:
		putChanges(e, any([]T(old)).([]float64), to)
	case []half.Float16:
		putChanges(e, any([]T(old)).([]half.Float16), to)
	case []half.BFloat16:
		putChanges(e, any([]T(old)).([]half.BFloat16), to)
	}
}

// putChanges puts what elements have changed by. Infinities that stay have not.
func putChanges[T Float](elements, before []T, to []float64) {
	for i, x := range elements {
		to[i] = 0
		if now, old := toFloat64(x), toFloat64(before[i]); now != old {
			to[i] = now - old
		}
	}
}

func (v vector[T]) moveBy(before elements, changes []float64) {
	v.copyFrom(before)
	switch e := any([]T(v)).(type) {
	case []float32:
		moveBy(e, changes)
	case []float64:
		moveBy(e, changes)
	case []half.Float16:
		moveBy(e, changes)
	case []half.BFloat16:
		moveBy(e, changes)
	}
}

func moveBy[T Float](elements []T, changes []float64) {
	for i, x := range elements {
		if changes[i] != 0 {
			elements[i] = fromFloat64[T](toFloat64(x) + changes[i])
		}
	}
}
