package measure

import (
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
)

// subject is an operation that is timed.
type subject[T ccl.Element] struct {
	library, name string // name: of a yardstick
	run           func() error
	// result returns the result, and countWrong counts its wrong elements. nil: it has
	// no result.
	result     func() []T
	countWrong func(phase int) int
	// show writes what other ranks read, starting with the phase of the first bucket; nil: nothing.
	show    func(phase int)
	buckets []buffers[T]
	ranks   int           // the first ranks, which take part
	parts   time.Duration // number of reported units in one run
}

// addCollective adds the subjects of a case that is a collective, or the barrier: the yardsticks
// and the entries.
func addCollective[T ccl.Element](b *bench[T], entries []chosen) (err error) {
	heap := func(n, _ int) ([]T, error) { return make([]T, n), nil }
	if b.private, err = b.newBuffers(heap); err != nil {
		return err
	}

	shared := func(_, longest int) ([]T, error) { return ccl.Alloc[T](background, b.comm, longest) }
	if slices.ContainsFunc(entries, func(e chosen) bool { return e.memory == Alloc && e.refused == "" }) {
		if b.allocated, err = b.newBuffers(shared); err != nil {
			return err
		}
	}
	if err := b.addYardsticks(); err != nil {
		return err
	}

	for _, entry := range entries {
		if entry.refused == "" {
			b.addEntry(entry)
		}
	}
	return nil
}

// addEntry adds an algorithm, or the barrier.
func (b *bench[T]) addEntry(e chosen) {
	k := b.calling(e.options)
	k.library, k.ranks, k.parts, k.buckets = Library, b.c.Ranks, 1, b.private
	if e.memory == Alloc {
		k.buckets = b.allocated
	}
	if k.countWrong != nil {
		k.result = func() []T { return b.recv }
	}
	b.subjects = append(b.subjects, k)
}

// calling returns the subject that calls the collective.
func (b *bench[T]) calling(options []ccl.CallOption) *subject[T] {
	ctx, op, root := background, b.op, b.c.Root
	k := &subject[T]{countWrong: b.countWrong}
	switch b.coll {
	case ccl.CollAllReduce:
		k.run = func() error { return ccl.AllReduce(ctx, b.comm, b.send, b.recv, op, options...) }
	case ccl.CollReduce:
		k.run = func() error { return ccl.Reduce(ctx, b.comm, b.send, b.recv, op, root, options...) }
	case ccl.CollReduceScatter:
		k.run = func() error { return ccl.ReduceScatter(ctx, b.comm, b.send, b.recv, op, options...) }
	case ccl.CollAllGather:
		k.run = func() error { return ccl.AllGather(ctx, b.comm, b.send, b.recv, options...) }

	case ccl.CollGather:
		k.run = func() error { return ccl.Gather(ctx, b.comm, b.send, b.recv, root, options...) }
	case ccl.CollBroadcast:
		k.run = func() error { return ccl.Broadcast(ctx, b.comm, b.recv, root, options...) }
	case ccl.CollScatter:
		k.run = func() error {
			if b.rank == root {
				return ccl.Scatter(ctx, b.comm, b.send, b.recv, root, options...)
			}
			return ccl.Scatter(ctx, b.comm, nil, b.recv, root, options...)
		}

	case ccl.CollAllToAll:
		k.run = func() error { return ccl.AllToAll(ctx, b.comm, b.send, b.recv, options...) }
	case ccl.CollScan:
		k.run = func() error { return ccl.Scan(ctx, b.comm, b.send, b.recv, op, options...) }
	case ccl.CollExScan:
		k.run = func() error { return ccl.ExScan(ctx, b.comm, b.send, b.recv, op, options...) }
	default:
		return &subject[T]{run: b.awaitAll}
	}
	return k
}

// countWrong returns the number of wrong elements of a result, whose inputs start at a phase.
func (b *bench[T]) countWrong(phase int) (n int) {
	if b.coll.Traits().Output == ccl.RankBlock {
		phase += b.rank * len(b.recv)
	}
	switch {
	case b.coll == ccl.CollExScan && b.rank == 0:
		return 0 // it gets nothing
	case b.coll == ccl.CollExScan:
		return differing(b.recv, b.reduced[b.rank-1], phase)
	case b.coll.Traits().Scans:
		return differing(b.recv, b.reduced[b.rank], phase)
	case b.coll.Traits().Reduces:
		return differing(b.recv, b.reduced[b.c.Ranks-1], phase)
	case b.coll.Traits().Output != ccl.RankBlocks:
		return differing(b.recv, b.inputs[b.c.Root], phase)
	}

	// A block from each rank.
	block := len(b.recv) / b.c.Ranks
	if b.coll.Traits().Input == ccl.RankBlocks {
		phase += b.rank * block
	}
	for from, input := range b.inputs {
		n += differing(b.recv[from*block:][:block], input, phase)
	}
	return n
}

func (b *bench[T]) awaitAll() error { return b.comm.Barrier(background) }
