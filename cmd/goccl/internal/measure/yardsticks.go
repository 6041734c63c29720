package measure

import (
	"cmp"
	"errors"
	"sync/atomic"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// addYardsticks adds the yardsticks that the case can have: a barrier copies nothing, a copy of a
// peer's data and core to core need memory that ranks share, and core to core needs two cores.
func (b *bench[T]) addYardsticks() error {
	if b.c.Collective != barrier {
		b.addYardstick(b.ownCopy())
		if b.shared {
			peer, err := b.peerCopy()
			if _, none := errors.AsType[*dist.AllocationFailedError](err); err != nil && !none {
				return err
			}
			if err == nil { // else there is too little shared memory, on all ranks
				b.addYardstick(peer)
			}
		}
		if b.c.floor() == Floor {
			b.addYardstick(b.reduceFloor())
		}
	}
	b.addSynchronisation()
	return nil
}

// addSynchronisation adds the yardsticks that move no data.
func (b *bench[T]) addSynchronisation() {
	if b.c.Collective != barrier {
		b.addYardstick(&subject[T]{name: Barrier, run: b.awaitAll})
	}
	if b.shared && b.c.Ranks > 1 && (usableCores() > 1 || dist.IsLaunched()) {
		b.addYardstick(&subject[T]{name: CoreToCore, run: b.passWord, ranks: 2, parts: 2 * roundTrips})
	}
}

func (b *bench[T]) addYardstick(k *subject[T]) {
	k.library, k.ranks, k.parts, k.buckets = Yardstick, cmp.Or(k.ranks, b.c.Ranks), max(1, k.parts), b.private
	b.subjects = append(b.subjects, k)
}

// ownCopy returns a yardstick: each rank copies its own data to each block of its result.
func (b *bench[T]) ownCopy() *subject[T] {
	return b.copying(OwnCopy, func(int) (int, []T) { return b.rank, b.send })
}

// peerCopy returns a yardstick: each rank copies the data of the next rank. If a rank gets all
// inputs, it copies from all ranks, starting with the next.
func (b *bench[T]) peerCopy() (*subject[T], error) {
	n := b.c.Count()
	region, err := ccl.CreateSharedRegion[T](background, b.comm, b.c.Ranks*len(b.private)*n)
	if err != nil {
		return nil, err
	}
	all := region.Slice() // until the communicator is closed
	shown := func(rank, bucket int) []T { return all[(rank*len(b.private)+bucket)*n:][:n] }
	k := b.copying(PeerCopy, func(block int) (int, []T) {
		from := (b.rank + 1) % b.c.Ranks
		if b.blocks() > 1 {
			from = block
		}
		return from, shown(from, b.bucket)
	})

	k.show = func(phase int) {
		for bucket := range b.private {
			fill(shown(b.rank, bucket), b.inputs[b.rank], (phase+bucket)%period)
		}
	}
	return k, nil
}

// blocks returns the number of inputs that this rank gets in copies.
func (b *bench[T]) blocks() int { return len(b.room) / len(b.send) }

// copying returns a yardstick: each rank makes copies as long as its input or result, whichever is
// longer, and then all ranks synchronise. from returns which input is copied to a block.
func (b *bench[T]) copying(name string, from func(block int) (rank int, input []T)) *subject[T] {
	scatters, start := b.coll == ccl.CollScatter, 0
	if name == PeerCopy {
		start = 1
	}
	length := func() int {
		if scatters && b.rank != b.c.Root { // has no input
			return len(b.recv)
		}
		return len(b.send)
	}
	return &subject[T]{
		name: name,
		run: func() error {
			n, blocks := length(), b.blocks()
			for i := range blocks {
				block := (b.rank + start + i) % blocks
				_, input := from(block)
				copy(b.room[block*n:][:n], input)
			}
			return b.awaitAll()
		},
		result: func() []T { return b.room[:b.blocks()*length()] },
		countWrong: func(phase int) (n int) {
			length := length()
			for block := range b.blocks() {
				rank, _ := from(block)
				n += differing(b.room[block*length:][:length], b.inputs[rank], phase)
			}
			return n
		},
	}
}

// floor returns the yardstick with only the memory traffic of the case:
// a copy of a rank's input or result, unless the traffic is less than that.
func (c Case) floor() string {
	coll := c.collective()
	toRoot := coll.Traits().Rooted && !coll.Traits().FromRoot
	if toRoot || coll.Traits().Output == ccl.RankBlock || IsWorkload(c.Collective) {
		return Floor
	}
	return OwnCopy
}

// HasFloor reports whether the floor of the case is a yardstick of its own, and not the own copy.
func (c Case) HasFloor() bool { return c.Bytes > 0 && c.floor() == Floor }

// reduceTile is the number of bytes that reduceFloor copies of every block at a time, so
// that a tile of the result stays in the first cache until it is complete.
const reduceTile = 8 << 10

// reduceFloor returns the floor of collectives that read more than they write. All ranks
// do the same work. For a reduction, each reads as many bytes as its input has and stores
// one R-th of them: it copies the R blocks of its input onto each other. For a gather or a
// scatter, each rank moves a block.
func (b *bench[T]) reduceFloor() *subject[T] {
	block, blocks := b.c.Count(), 1
	switch coll := b.coll; {
	case coll.Traits().Reduces:
		block = max(1, block/b.c.Ranks)
		blocks = b.c.Count() / block
	case coll == ccl.CollScatter:
		block /= b.c.Ranks
	}
	tile := reduceTile / b.c.elementSize()
	return &subject[T]{
		name: Floor,
		run: func() error {
			for lo := 0; lo < block; lo += tile {
				hi := min(lo+tile, block)
				for at := 0; at < blocks*block; at += block {
					copy(b.room[lo:hi], b.send[at+lo:at+hi])
				}
			}
			return b.awaitAll()
		},
		result: func() []T { return b.room[:block] },
		countWrong: func(phase int) int {
			return differing(b.room[:block], b.inputs[b.rank], phase+(blocks-1)*block)
		},
	}
}

// roundTrips is large enough to hide the time to read the clock.
const roundTrips = 32

// giveUpLooks is how often a rank polls the word before it gives up, about 50
// microseconds: then one of the two ranks has no core, and the call is not counted.
const giveUpLooks = 1 << 15

// passWord passes a word from rank 0 to rank 1 and back: both count, and each waits
// for the other's count. The ranks' calls are counted, so no count is read twice.
func (b *bench[T]) passWord() error {
	if b.rank > 1 {
		return nil
	}
	counter, other := b.words.counter(b.rank), b.words.counter(1-b.rank)
	first := int64(b.calls-len(b.private)+b.bucket) * roundTrips
	for n := first; n < first+roundTrips; n++ {
		if b.rank == 0 {
			atomic.StoreInt64(counter, n)
		}

		for looks := 0; atomic.LoadInt64(other) < n; looks++ {
			if looks == giveUpLooks {
				b.gaveUp = true
				return nil
			}
		}
		if b.rank == 1 {
			atomic.StoreInt64(counter, n)
		}
	}
	return nil
}
