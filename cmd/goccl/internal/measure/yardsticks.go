package measure

import (
	"sync/atomic"

	"github.com/goccl/goccl/ccl"
)

// addYardsticks adds the yardsticks that the case can have: a barrier copies nothing, and
// core to core needs two cores.
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

// copying returns a yardstick: each rank copies the data of the rank at a distance, as long
// as its input or result, whichever is longer, and then all ranks synchronise. If a
// rank gets all inputs, it copies from all ranks, starting with that one.
func (b *bench[T]) copying(name string, distance int) *contender[T] {
	ranks, scatters := b.c.Ranks, b.c.collective() == ccl.CollScatter
	places := func(r *rank[T]) int { return len(r.room) / len(r.send) }
	length := func(r *rank[T]) int {
		if scatters && r.id != b.c.Root { // has no input
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

// floor returns the yardstick with only the memory traffic of the case:
// a copy of a rank's input or result, unless the traffic is less than that.
func (c Case) floor() string {
	switch c.collective() {
	case ccl.CollReduce, ccl.CollReduceScatter, ccl.CollGather, ccl.CollScatter:
		return Floor
	}
	return OwnCopy
}

// reduceTile is the number of bytes that reduceFloor copies of every block at a time, so
// that a tile of the result stays in the first cache until it is complete.
const reduceTile = 8 << 10

// reduceFloor returns the floor of collectives that read more than they write. All ranks
// do the same work. For a reduction, each reads as many bytes as its input has and stores
// one R-th of them: it copies the R blocks of its input onto each other. For a gather or a
// scatter, each rank moves a block.
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

// roundTrips is large enough to hide the time to read the clock.
const roundTrips = 32

// giveUpLooks is how often a rank polls the word before it gives up, about 50
// microseconds: then one of the two ranks has no core, and the call is not counted.
const giveUpLooks = 1 << 15

// word is alone on its cache line.
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
