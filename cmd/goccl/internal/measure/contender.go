package measure

import (
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl"
)

// contender is something that is timed.
type contender[T scalar] struct {
	library, name string
	run           func(r *rank[T]) error
	// result is where the result is afterwards, and want the pattern that it has to
	// have; in an all-gather, at the place of each rank. nil: there is no result.
	result func(r *rank[T]) []T
	want   func(r *rank[T], place int) []T
	parts  time.Duration // how many times what is reported happens in one run
}

// addEntry adds an algorithm, or the barrier.
func (b *bench[T]) addEntry(e chosen) {
	k := &contender[T]{library: Library, name: e.entry, parts: 1, result: func(r *rank[T]) []T { return r.recv }}
	switch b.c.Collective {
	case allReduce:
		k.run = func(r *rank[T]) error {
			return ccl.AllReduce(background, r.comm, r.send, r.recv, b.op, e.options...)
		}
		k.want = func(r *rank[T], _ int) []T { return b.reduced }
	case allGatherV:
		counts := make([]int, b.c.Ranks)
		for i := range counts {
			counts[i] = b.c.Count()
		}
		k.run = func(r *rank[T]) error {
			return ccl.AllGatherV(background, r.comm, r.send, r.recv, counts, nil, e.options...)
		}
		k.want = func(r *rank[T], place int) []T { return b.inputs[place] }
	case broadcast:
		k.run = func(r *rank[T]) error {
			return ccl.Broadcast(background, r.comm, r.recv, b.c.Root, e.options...)
		}
		k.want = func(r *rank[T], _ int) []T { return b.inputs[b.c.Root] }
	default:
		k.run, k.result = meet[T], nil
	}
	b.contenders = append(b.contenders, k)
}

func meet[T scalar](r *rank[T]) error { return r.comm.Barrier(background) }

// addYardsticks adds those that the case can have: there is nothing to copy for a
// barrier, and a word needs two cores to go between.
func (b *bench[T]) addYardsticks() {
	add := func(k *contender[T]) {
		k.library = Yardstick
		k.parts = max(1, k.parts)
		b.contenders = append(b.contenders, k)
	}
	if b.c.Collective != barrier {
		add(b.copying(OwnCopy, 0))
		add(b.copying(PeerCopy, 1))
		add(&contender[T]{name: Barrier, run: meet[T]})
	}
	if b.c.Ranks > 1 && usableCores() > 1 {
		add(&contender[T]{name: CoreToCore, run: b.passWord, parts: 2 * roundTrips})
	}
}

// copying returns a yardstick: each rank copies what the rank at a distance has
// written, as much as a result is long, and then all meet. In an all-gather the
// peers are all ranks, one after the other from that one on.
func (b *bench[T]) copying(name string, distance int) *contender[T] {
	ranks, places := b.c.Ranks, 1
	if b.c.Collective == allGatherV {
		places = ranks
	}
	from := func(r *rank[T], place int) int {
		if places > 1 && distance > 0 {
			return place
		}
		return (r.id + distance) % ranks
	}
	return &contender[T]{
		name: name,
		run: func(r *rank[T]) error {
			n := len(r.send)
			for i := range places {
				place := (r.id + distance + i) % places
				copy(r.room[place*n:][:n], b.ranks[from(r, place)].send)
			}
			return meet(r)
		},
		result: func(r *rank[T]) []T { return r.room },
		want:   func(r *rank[T], place int) []T { return b.inputs[from(r, place)] },
	}
}

// roundTrips of the word are enough to make the clock's own time disappear.
const roundTrips = 32

// patience is how often a rank looks for the word before it gives up: some 50
// microseconds. Then the machine has no core for one of the two, and how long it
// takes until it has is not what this is about. Such calls do not count.
const patience = 1 << 15

// word is one that nothing else shares a cache line with.
type word struct {
	atomic.Int64
	_ [120]byte
}

// passWord passes a word from rank 0 to rank 1 and back: both count, and each waits
// for the other's count. The ranks' calls are counted, so no word is met twice.
func (b *bench[T]) passWord(r *rank[T]) error {
	if r.id > 1 {
		return nil
	}
	own, other := &b.word[r.id], &b.word[1-r.id]
	first := int64(r.calls) * roundTrips
	for n := first; n < first+roundTrips; n++ {
		if r.id == 0 {
			own.Store(n)
		}
		for looks := 0; other.Load() < n; looks++ {
			if looks == patience {
				r.gaveUp = true
				return nil
			}
		}
		if r.id == 1 {
			own.Store(n)
		}
	}
	return nil
}
