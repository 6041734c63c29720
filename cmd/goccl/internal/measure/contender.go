package measure

import (
	"time"

	"github.com/goccl/goccl/ccl"
)

// contender is an operation that is timed.
type contender[T ccl.Element] struct {
	library, name string // name: of a yardstick
	run           func(r *rank[T]) error
	// result returns the result, and wrong counts its wrong elements. nil: it has no
	// result.
	result func(r *rank[T]) []T
	wrong  func(r *rank[T], phase int) int
	parts  time.Duration // number of reported units in one run
}

// addEntry adds an algorithm, or the barrier.
func (b *bench[T]) addEntry(e chosen) {
	k := b.calling(e.options)
	k.library, k.parts = Library, 1
	if k.wrong != nil {
		k.result = func(r *rank[T]) []T { return r.recv }
	}
	b.contenders = append(b.contenders, k)
}

// calling returns the contender that calls the collective.
func (b *bench[T]) calling(options []ccl.CallOption) *contender[T] {
	ctx, op, root, k := background, b.op, b.c.Root, &contender[T]{run: meet[T]}
	reduced := func(r *rank[T], phase int) int { return differing(r.recv, b.reduced[b.c.Ranks-1], phase) }
	fromRoot := func(r *rank[T], phase int) int { return differing(r.recv, b.inputs[root], phase) }
	gathered := func(r *rank[T], phase int) (wrong int) {
		for n, at := len(r.send), 0; at < len(r.recv); at += n {
			wrong += differing(r.recv[at:][:n], b.inputs[at/n], phase)
		}
		return wrong
	}
	switch b.c.collective() {
	case ccl.CollAllReduce:
		k.run = func(r *rank[T]) error { return ccl.AllReduce(ctx, r.comm, r.send, r.recv, op, options...) }
		k.wrong = reduced
	case ccl.CollReduce:
		k.run = func(r *rank[T]) error { return ccl.Reduce(ctx, r.comm, r.send, r.recv, op, root, options...) }
		k.wrong = reduced
	case ccl.CollReduceScatter:
		k.run = func(r *rank[T]) error { return ccl.ReduceScatter(ctx, r.comm, r.send, r.recv, op, options...) }
		k.wrong = func(r *rank[T], phase int) int { return reduced(r, phase+r.id*len(r.recv)) }
	case ccl.CollAllGather:
		k.run = func(r *rank[T]) error { return ccl.AllGather(ctx, r.comm, r.send, r.recv, options...) }
		k.wrong = gathered
	case ccl.CollGather:
		k.run = func(r *rank[T]) error { return ccl.Gather(ctx, r.comm, r.send, r.recv, root, options...) }
		k.wrong = gathered
	case ccl.CollBroadcast:
		k.run = func(r *rank[T]) error { return ccl.Broadcast(ctx, r.comm, r.recv, root, options...) }
		k.wrong = fromRoot
	case ccl.CollScatter:
		k.run = func(r *rank[T]) error {
			if r.id == root {
				return ccl.Scatter(ctx, r.comm, r.send, r.recv, root, options...)
			}
			return ccl.Scatter(ctx, r.comm, nil, r.recv, root, options...)
		}
		k.wrong = func(r *rank[T], phase int) int { return fromRoot(r, phase+r.id*len(r.recv)) }
	case ccl.CollAllToAll:
		k.run = func(r *rank[T]) error { return ccl.AllToAll(ctx, r.comm, r.send, r.recv, options...) }
		k.wrong = func(r *rank[T], phase int) (wrong int) {
			n := len(r.recv) / b.c.Ranks
			for from, input := range b.inputs {
				wrong += differing(r.recv[from*n:][:n], input, phase+r.id*n)
			}
			return wrong
		}
	case ccl.CollScan:
		k.run = func(r *rank[T]) error { return ccl.Scan(ctx, r.comm, r.send, r.recv, op, options...) }
		k.wrong = func(r *rank[T], phase int) int { return differing(r.recv, b.reduced[r.id], phase) }
	case ccl.CollExScan:
		k.run = func(r *rank[T]) error { return ccl.ExScan(ctx, r.comm, r.send, r.recv, op, options...) }
		k.wrong = func(r *rank[T], phase int) int {
			if r.id == 0 { // gets nothing
				return 0
			}
			return differing(r.recv, b.reduced[r.id-1], phase)
		}
	}
	return k
}

func meet[T ccl.Element](r *rank[T]) error { return r.comm.Barrier(background) }
