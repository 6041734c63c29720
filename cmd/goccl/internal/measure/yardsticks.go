package measure

import (
	"sync/atomic"

	"github.com/goccl/goccl/ccl"
)

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
		if b.c.floor() == Floor {
			add(b.reduceFloor())
		}
		add(&contender[T]{name: Barrier, run: meet[T]})
	}
	if b.c.Ranks > 1 && usableCores() > 1 {
		add(&contender[T]{name: CoreToCore, run: b.passWord, parts: 2 * roundTrips})
	}
}

// copying returns a yardstick: each rank copies what the rank at a distance has
// written, as much as it brings or gets, whichever is longer, and then all meet. Where a
// rank gets all inputs, the peers are all ranks, one after the other from that one on.
func (b *bench[T]) copying(name string, distance int) *contender[T] {
	ranks, scatters := b.c.Ranks, b.c.collective() == ccl.CollScatter
	places := func(r *rank[T]) int { return len(r.room) / len(r.send) }
	length := func(r *rank[T]) int {
		if scatters && r.id != b.c.Root { // brings nothing
			return len(r.recv)
		}
		return len(r.send)
	}
	from := func(r *rank[T], place int) int {
		if places(r) > 1 && distance > 0 {
			return place
		}
		return (r.id + distance) % ranks
	}
	return &contender[T]{
		name: name,
		run: func(r *rank[T]) error {
			n := length(r)
			for i := range places(r) {
				place := (r.id + distance + i) % places(r)
				copy(r.room[place*n:][:n], b.ranks[from(r, place)].send)
			}
			return meet(r)
		},
		result: func(r *rank[T]) []T { return r.room[:places(r)*length(r)] },
		wrong: func(r *rank[T], phase int) (wrong int) {
			n := length(r)
			for place := range places(r) {
				wrong += differing(r.room[place*n:][:n], b.inputs[from(r, place)], phase)
			}
			return wrong
		},
	}
}

// floor returns the yardstick that has the memory traffic of the case, and nothing else:
// the copy of what a rank brings or gets, unless it is less than that.
func (c Case) floor() string {
	switch c.collective() {
	case ccl.CollReduce, ccl.CollReduceScatter, ccl.CollGather, ccl.CollScatter:
		return Floor
	}
	return OwnCopy
}

// reduceTile is how many bytes of every block reduceFloor goes through before it goes on: what
// is stored stays in the first cache until it is whole.
const reduceTile = 8 << 10

// reduceFloor returns the floor of collectives that do not read as much as they write. All
// ranks take part alike. For a reduction, each reads as much as its input, and stores
// the one R-th that is its share of the result, as a fold does: it copies the R blocks
// of its input onto each other. What only moves, moves by a block of each rank.
func (b *bench[T]) reduceFloor() *contender[T] {
	block, blocks := b.c.Count(), 1
	switch coll := b.c.collective(); {
	case coll.Reduces():
		block = max(1, block/b.c.Ranks)
		blocks = b.c.Count() / block
	case coll == ccl.CollScatter:
		block /= b.c.Ranks
	}
	tile := reduceTile / b.c.elementSize()
	return &contender[T]{
		name: Floor,
		run: func(r *rank[T]) error {
			for lo := 0; lo < block; lo += tile {
				hi := min(lo+tile, block)
				for at := 0; at < blocks*block; at += block {
					copy(r.room[lo:hi], r.send[at+lo:at+hi])
				}
			}
			return meet(r)
		},
		result: func(r *rank[T]) []T { return r.room[:block] },
		wrong: func(r *rank[T], phase int) int {
			return differing(r.room[:block], b.inputs[r.id], phase+(blocks-1)*block)
		},
	}
}

// roundTrips of the word are enough to make the clock's own time disappear.
const roundTrips = 32

// giveUpLooks is how often a rank looks for the word before it gives up: some 50
// microseconds. Then the machine has no core for one of the two, and how long it
// takes until it has is not what this is about. Such calls do not count.
const giveUpLooks = 1 << 15

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
			if looks == giveUpLooks {
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
