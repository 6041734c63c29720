package reduce

import (
	"math/bits"
	"slices"
	"sync"
	"unsafe"
)

// tileBytes is the part of every buffer that tiles finishes before it continues.
// The running result and a source lie in the first-level cache together, and up to
// eight buffers reduced in place are still there when the result is stored over
// them. Tiles this small also keep the number of memory streams read at once at one
// or two, whatever the number of sources.
const tileBytes = 4096

// Many reduces n elements of every source from left to right and stores the
// result to every destination:
//
//	dsts[k][i] = ((srcs[0][i] op srcs[1][i]) op srcs[2][i]) ...
//
// One source is copied. [Avg] divides the sum once by ranks, which need not be
// the number of sources, with 1 <= ranks <= 1<<31-1; other operations ignore
// ranks. [Float16] and [BFloat16] are rounded once, when they are stored, other
// types at every step. Without a source or without a destination nothing happens.
//
// A destination may be one of the sources exactly, whatever its position, as
// when ranks reduce in place; otherwise the buffers do not overlap. Many keeps
// neither slice.
//
// With stream the results are stored past the caches, if the machine can do that and all
// destinations have the same offset in their cache lines. That saves reading the lines
// before they are overwritten. It pays for destinations that are not sources, if all buffers
// together exceed the caches: later reads of the results come from memory.
func Many(t Type, op Op, dsts, srcs []unsafe.Pointer, n, ranks int, stream bool) {
	best.many(t, op, dsts, srcs, n, ranks, stream)
}

func (m implementation) many(t Type, op Op, dsts, srcs []unsafe.Pointer, n, ranks int, stream bool) {
	if len(dsts) == 0 || len(srcs) == 0 {
		return
	}

	done := 0
	switch size := t.Size(); {
	case n*size >= vectorBytes:
		if done = m.reduce(t, op, dsts, srcs, 0, n*size, ranks, stream) / size; done == n {
			return
		}
	case !t.half() && len(dsts) == 1 && len(srcs) > 1 && accumulator(dsts, srcs) == 0:
		short(t, op, dsts[0], srcs, n, ranks)
		return
	}

	if t.half() {
		halves(t, op, dsts, srcs, done, n, ranks)
	} else {
		m.tiles(t, op, dsts, srcs, done, n, ranks)
	}
}

// short is tiles for one destination and fewer elements than a vector has.
func short(t Type, op Op, dst unsafe.Pointer, srcs []unsafe.Pointer, n, ranks int) {
	pair := pairs[t][op]
	pair(dst, srcs[0], srcs[1], n)
	for _, src := range srcs[2:] {
		pair(dst, dst, src, n)
	}
	if op == Avg {
		divisions[t](dst, n, ranks)
	}
}

// vectorBytes is the length of the shortest buffers that assembly reduces.
const vectorBytes = 32

// tiles is Many for the other types, for the elements from done to n, by pairs.
func (m implementation) tiles(t Type, op Op, dsts, srcs []unsafe.Pointer, done, n, ranks int) {
	if home := accumulator(dsts, srcs); home >= 0 {
		m.tilesIn(home, nil, t, op, dsts, srcs, done, n, ranks)
		return
	}
	spare := spares.Get().(*[2]tile)
	defer spares.Put(spare)
	m.tilesIn(-1, unsafe.Pointer(spare), t, op, dsts, srcs, done, n, ranks)
}

// tilesIn holds the running result of a tile in the destination home, or, if that is -1, in acc.
func (m implementation) tilesIn(home int, acc unsafe.Pointer, t Type, op Op, dsts, srcs []unsafe.Pointer, done, n, ranks int) {
	size := t.Size()
	whole := tileBytes >> bits.TrailingZeros(uint(size)) // a division would take as long as a short vector
	for ; done < n; done += whole {
		at, count := done*size, min(n-done, whole)
		if home >= 0 {
			acc = unsafe.Add(dsts[home], at)
		}
		if len(srcs) == 1 {
			move(acc, unsafe.Add(srcs[0], at), count*size)
		} else {
			m.pair(t, op, acc, unsafe.Add(srcs[0], at), unsafe.Add(srcs[1], at), count)
		}

		for k := 2; k < len(srcs); k++ {
			m.pair(t, op, acc, acc, unsafe.Add(srcs[k], at), count)
		}
		if op == Avg {
			divisions[t](acc, count, ranks)
		}
		// Copying a tile out of the cache is wide, while a second store inside
		// the loop goes element by element: on the whole that is slower, even
		// for two ranks in place.
		for k, dst := range dsts {
			if k != home {
				move(unsafe.Add(dst, at), acc, count*size)
			}
		}
	}
}

// accumulator returns the index of a destination that can hold the running
// result, or -1. It must not be a source that is still to be read when the result
// is first stored, which is when the first two sources have been read.
func accumulator(dsts, srcs []unsafe.Pointer) int {
	if len(srcs) <= 2 {
		return 0
	}
	return slices.IndexFunc(dsts, func(dst unsafe.Pointer) bool {
		return !slices.Contains(srcs[2:], dst)
	})
}

// spares holds tiles for results that no destination can hold: results for a single
// destination which is also a late source, as when one rank that is not among
// the first two receives a reduction in place, and results that Scan does not store.
// They come from a pool since the pointer passes through a function value, so that an
// array in Many's frame would be allocated by every call.
var spares = sync.Pool{New: func() any { return new([2]tile) }}

type tile [tileBytes / 8]uint64

// move copies n bytes between buffers that are equal or disjoint.
func move(dst, src unsafe.Pointer, n int) {
	if dst != src {
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
	}
}
