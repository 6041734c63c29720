package measure

import (
	"time"

	"github.com/goccl/goccl/ccl"
)

// contender is an operation that is timed.
type contender[T ccl.Element] struct {
	library, name string
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
	k.library, k.name, k.parts = Library, e.entry, 1
	if k.wrong != nil {
		k.result = func(r *rank[T]) []T { return r.recv }
	}
	b.contenders = append(b.contenders, k)
}

// calling returns the contender that calls the collective.
func (b *bench[T]) calling(options []ccl.CallOption) *contender[T] {
	ctx, op, root := background, b.op, b.c.Root
	gathered := func(r *rank[T], phase int) (wrong int) {
		for n, at := len(r.send), 0; at < len(r.recv); at += n {
			wrong += differing(r.recv[at:][:n], b.inputs[at/n], phase)
		}
		return wrong
	}
	switch b.c.collective() {
	case ccl.CollAllReduce:
		return &contender[T]{
			run:   func(r *rank[T]) error { return ccl.AllReduce(ctx, r.comm, r.send, r.recv, op, options...) },
			wrong: func(r *rank[T], phase int) int { return differing(r.recv, b.reduced[b.c.Ranks-1], phase) },
		}
	case ccl.CollReduce:
		return &contender[T]{
			run:   func(r *rank[T]) error { return ccl.Reduce(ctx, r.comm, r.send, r.recv, op, root, options...) },
			wrong: func(r *rank[T], phase int) int { return differing(r.recv, b.reduced[b.c.Ranks-1], phase) },
		}
	case ccl.CollReduceScatter:
		return &contender[T]{
			run: func(r *rank[T]) error { return ccl.ReduceScatter(ctx, r.comm, r.send, r.recv, op, options...) },
			wrong: func(r *rank[T], phase int) int {
				return differing(r.recv, b.reduced[b.c.Ranks-1], phase+r.id*len(r.recv))
			},
		}
	case ccl.CollAllGather:
		return &contender[T]{
			run:   func(r *rank[T]) error { return ccl.AllGather(ctx, r.comm, r.send, r.recv, options...) },
			wrong: gathered,
		}
	case ccl.CollGather:
		return &contender[T]{
			run:   func(r *rank[T]) error { return ccl.Gather(ctx, r.comm, r.send, r.recv, root, options...) },
			wrong: gathered,
		}
	case ccl.CollBroadcast:
		return &contender[T]{
			run:   func(r *rank[T]) error { return ccl.Broadcast(ctx, r.comm, r.recv, root, options...) },
			wrong: func(r *rank[T], phase int) int { return differing(r.recv, b.inputs[root], phase) },
		}
	case ccl.CollScatter:
		return &contender[T]{
			run: func(r *rank[T]) error {
				if r.id == root {
					return ccl.Scatter(ctx, r.comm, r.send, r.recv, root, options...)
				}
				return ccl.Scatter(ctx, r.comm, nil, r.recv, root, options...)
			},
			wrong: func(r *rank[T], phase int) int { return differing(r.recv, b.inputs[root], phase+r.id*len(r.recv)) },
		}
	case ccl.CollAllToAll:
		return &contender[T]{
			run: func(r *rank[T]) error { return ccl.AllToAll(ctx, r.comm, r.send, r.recv, options...) },
			wrong: func(r *rank[T], phase int) (wrong int) {
				n := len(r.recv) / b.c.Ranks
				for from, input := range b.inputs {
					wrong += differing(r.recv[from*n:][:n], input, phase+r.id*n)
				}
				return wrong
			},
		}
	case ccl.CollScan:
		return &contender[T]{
			run:   func(r *rank[T]) error { return ccl.Scan(ctx, r.comm, r.send, r.recv, op, options...) },
			wrong: func(r *rank[T], phase int) int { return differing(r.recv, b.reduced[r.id], phase) },
		}
	case ccl.CollExScan:
		return &contender[T]{
			run: func(r *rank[T]) error { return ccl.ExScan(ctx, r.comm, r.send, r.recv, op, options...) },
			wrong: func(r *rank[T], phase int) int {
				if r.id == 0 { // gets nothing
					return 0
				}
				return differing(r.recv, b.reduced[r.id-1], phase)
			},
		}
	}
	return &contender[T]{run: meet[T]}
}

func meet[T ccl.Element](r *rank[T]) error { return r.comm.Barrier(background) }
