package ddp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/goccl/goccl/ccl"
)

// logical is the state of Options.LogicalShards in a step.
type logical struct {
	tree    *shardTree // nil: the option is not set
	current int        // the shard whose gradients are computed, or were last; low-1 before the first
	unready error      // of a shard before the last one

	buffers *shardBuffers // nil: there are none
}

// reset makes the step one that has not begun.
func (l *logical) reset() {
	l.unready = nil
	if l.tree != nil {
		l.current = l.tree.low - 1
	}
}

// isBeforeLast reports whether shards of this rank follow the current one in the step.
func (l *logical) isBeforeLast() bool { return l.tree != nil && l.current < l.tree.high-1 }

// Shards returns the numbers of the logical shards that this rank hosts, in a step: the body of
// the loop computes the gradients of a shard, from zero, and calls Ready for each parameter. Wait
// comes after it.
//
//	for shard := range model.Shards() {
//		loss := net.Forward(batchOf(step, shard))
//		net.Backward(loss, model.Ready) // gradients of this shard alone
//	}
//	err := model.Wait(ctx)
//
// The body makes no calls over ranks, since ranks host unequally many shards: SyncMoments is for
// training without them.
//
// A shard may have several batches: Ready is called with the sum of their gradients. Without
// Options.LogicalShards each rank has one shard, of its own number.
//
// A second loop in a step, and a loop that ends before its last shard, are errors of Wait. After
// the end of the Reducer or of its group there are no shards.
func (r *Reducer) Shards() iter.Seq[int] {
	return func(yield func(int) bool) {
		t := r.logical.tree
		if t == nil {
			if r.comm.Retain() {
				r.comm.Release()
				yield(r.comm.Rank())
			}
			return
		}

		for shard := t.low; shard < t.high; shard++ {
			if !r.beginShard(shard) || !yield(shard) {
				return
			}
		}
	}
}

// beginShard ends the shard before, and begins one. It returns false if it cannot.
func (r *Reducer) beginShard(shard int) bool {
	if !r.comm.Retain() {
		return false
	}
	defer r.comm.Release()
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.logical
	if l.current != shard-1 {
		r.step.noteMistake(invalid("ddp.Shards", "a second loop over Shards in a step: call Wait first"))
		return false
	}

	r.begin()
	if shard > l.tree.low {
		r.endShard()
	}
	l.current = shard
	if l.buffers != nil {
		l.buffers.begin(r.opts.Buffers, shard == l.tree.low)
	}
	return true
}

// endShard ends a shard that another one follows.
func (r *Reducer) endShard() {
	if unready := r.unreadyParameters(); unready != nil && r.logical.unready == nil {
		r.logical.unready = unready
	}
	if b := r.logical.buffers; b != nil {
		b.end(r.opts.Buffers, r.logical.current)
	}
	clear(r.step.ready)
	clear(r.step.freshOf)
	r.step.order, r.step.next = r.step.order[:0], 0
	for i := range r.buckets {
		r.buckets[i].pending = len(r.buckets[i].parameters)
	}
}

// checkShards returns why this rank cannot end a step of logical shards, nil if it can.
func (r *Reducer) checkShards() error {
	l := &r.logical
	switch {
	case l.tree == nil:
		return nil
	case l.unready != nil:
		return l.unready
	case l.current != l.tree.high-1:
		err := r.unreadyParameters()
		r.step.next = 0 // no bucket has started
		if l.current >= l.tree.low && err != nil {
			return err
		}
		e := &UnreadyError{Rank: r.comm.Rank(), IsSharded: true, Shard: l.current + 1}
		for _, p := range r.params {
			e.Parameters = append(e.Parameters, p.name)
		}
		return e
	}
	return nil
}

// mostShards bounds the time and the memory that the tree of shards takes.
const mostShards = 1 << 20

// checkLogicalShards returns what is wrong with LogicalShards in a group.
func (o *Options) checkLogicalShards(c *ccl.Communicator) error {
	switch {
	case o.LogicalShards == 0, c == nil: // New refuses no group by itself
		return nil
	case o.LogicalShards < c.Size():
		return fmt.Errorf("LogicalShards is %d for %d ranks: each rank needs one at least", o.LogicalShards, c.Size())
	case o.LogicalShards > mostShards:
		return fmt.Errorf("LogicalShards is %d: at most %d are possible", o.LogicalShards, mostShards)
	}

	// What cannot follow the tree.
	excluded := ""
	switch {
	case o.Shard:
		excluded = "Shard, whose optimizer is divided by ranks"
	case o.Hooks.isSet():
		excluded = "Hooks, which reduce in orders of their own"

	case o.FindUnused, o.StaticGraph:
		excluded = "FindUnused and StaticGraph: call Ready for all parameters, with zeros where a shard has no gradient"
	case o.BroadcastBuffers:
		excluded = "BroadcastBuffers: buffers become means over all shards"
	}
	if excluded != "" {
		return errors.New("LogicalShards is set, which excludes " + excluded)
	}

	s := c.Selector()
	choice, err := s.Choose(ccl.Shape{Collective: ccl.CollAllReduce, Ranks: c.Size(), Bytes: 4, Total: 4, DType: ccl.Float32, Op: ccl.Avg, Topology: s.Topology()}, pairwise)
	switch _, isMissing := errors.AsType[*ccl.InvalidArgumentError](err); {
	case isMissing:
		return errors.New("LogicalShards needs the algorithm pairwise: add the entry `pairwise: {module: pairwise}` to algorithms in ccl.yaml")
	case err != nil:
		return fmt.Errorf("LogicalShards needs the algorithm pairwise: %w", err)
	case choice.Algorithm.Name != pairwise:
		return fmt.Errorf("LogicalShards needs the algorithm pairwise, and the entry pairwise in ccl.yaml has the module %s", choice.Algorithm.Name)
	}
	return nil
}

// errLogical returns the error of a method that logical shards exclude, nil if there are none.
func (r *Reducer) errLogical(operation, why string) error {
	if r.logical.tree == nil {
		return nil
	}
	return invalid("ddp."+operation, "Options.LogicalShards is set: %s", why)
}

// ShardRand returns random numbers for a shard in a step of the whole training, such as those of
// dropout or of an augmentation. They do not depend on the rank that hosts it.
func ShardRand(seed uint64, step, shard int) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(step))
	binary.LittleEndian.PutUint64(key[16:], uint64(shard))
	return rand.New(rand.NewChaCha8(key))
}
