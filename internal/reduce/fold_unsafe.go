package reduce

import (
	"sync"
	"unsafe"
)

// Fold is [Many] in the order of a balanced binary tree (pairwise summation, Higham, 1993). A
// source is the result of that many leaves, which are next to each other in the tree; without
// leaves each source is one. Of n leaves the left subtree has the largest power of two below n:
//
//	dsts[k][i] = ((srcs[0][i] op srcs[1][i]) op (srcs[2][i] op srcs[3][i])) op srcs[4][i]
//
// So a result does not depend on which leaves were reduced before, as long as they are whole
// subtrees. [Float16] and [BFloat16] are held in float32 up to the end. [Avg] divides by `by`.
func Fold(t Type, op Op, dsts, srcs []unsafe.Pointer, leaves []int, n, by int) {
	best.fold(t, op, dsts, srcs, leaves, n, by)
}

func (m implementation) fold(t Type, op Op, dsts, srcs []unsafe.Pointer, leaves []int, n, by int) {
	if len(dsts) == 0 || len(srcs) == 0 {
		return
	}
	tiles := folds.Get().(*foldTiles)
	defer folds.Put(tiles)
	f := folding{implementation: m, of: t, held: t, op: op, tiles: tiles}
	if t.half() {
		f.held = Float32
	}

	whole := tileBytes / f.held.Size()
	for done := 0; done < n; done += whole {
		f.at, f.count = done*t.Size(), min(n-done, whole)
		acc := f.fold(srcs, leaves, 0)
		if op == Avg {
			if top := unsafe.Pointer(&tiles[0]); acc != top { // of one source
				move(top, acc, f.count*t.Size())
				acc = top
			}
			m.divide(f.held, acc, f.count, by)
		}
		f.store(dsts, acc)
	}
}

// folding is one tile of a Fold.
type folding struct {
	implementation
	of, held Type // of the buffers, and of results on the way
	op       Op
	at       int // byte of each buffer
	count    int // elements
	tiles    *foldTiles
}

// fold returns where the result of a subtree is: in a source, or in the tile of that depth.
func (f *folding) fold(srcs []unsafe.Pointer, leaves []int, depth int) unsafe.Pointer {
	tile := unsafe.Pointer(&f.tiles[depth])
	if len(srcs) == 1 {
		return f.leaf(tile, unsafe.Add(srcs[0], f.at))
	}

	split := SplitFold(len(srcs), leaves)
	var rest []int
	if leaves != nil {
		leaves, rest = leaves[:split], leaves[split:]
	}
	a := f.fold(srcs[:split], leaves, depth)
	b := f.fold(srcs[split:], rest, depth+1)
	f.pair(f.held, f.op, tile, a, b, f.count)
	return tile
}

// leaf returns where a source is in the type in which results are held: there, or in a tile.
func (f *folding) leaf(tile, src unsafe.Pointer) unsafe.Pointer {
	switch f.of {
	case Float16:
		f.widenFloat16s(tile, src, f.count)
	case BFloat16:
		widenAt(BFloat16, view[float32](tile, f.count), src)
	default:
		return src
	}
	return tile
}

// SplitFold returns how many of some sources, at least two, are in the left subtree: see Fold.
func SplitFold(sources int, leaves []int) (split int) {
	total := sources
	if leaves != nil {
		total = 0
		for _, n := range leaves {
			total += n
		}
	}

	half := 1
	for 2*half < total {
		half *= 2
	}
	if leaves == nil {
		return half
	}

	for n := 0; n < half; split++ {
		n += leaves[split]
	}
	return split
}

// store stores a result to all destinations. All sources of the tile were read.
func (f *folding) store(dsts []unsafe.Pointer, acc unsafe.Pointer) {
	first := unsafe.Add(dsts[0], f.at)
	switch f.of {
	case Float16:
		f.narrowFloat16s(first, acc, f.count)
	case BFloat16:
		narrowAt(BFloat16, first, view[float32](acc, f.count))
	default:
		move(first, acc, f.count*f.of.Size())
	}
	for _, dst := range dsts[1:] {
		move(unsafe.Add(dst, f.at), first, f.count*f.of.Size())
	}
}

// foldTiles are the results on the way from a leaf to the root, of up to 2^23 sources.
type foldTiles [24]tile

var folds = sync.Pool{New: func() any { return new(foldTiles) }}

// FoldSlices is Fold of slices of one length into dst, which may be one of them: their sum, divided
// by `by`.
func FoldSlices[T float32 | float64](dst []T, srcs [][]T, leaves []int, by int) {
	all := make([]unsafe.Pointer, len(srcs))
	for i, src := range srcs {
		all[i] = unsafe.Pointer(unsafe.SliceData(src[:len(dst)]))
	}
	Fold(typeOf[T](), Avg, []unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(dst))}, all, leaves, len(dst), by)
}

// AddSlices stores a + b to dst, which may be one of them. All have one length.
func AddSlices[T float32 | float64](dst, a, b []T) {
	n := len(dst)
	Pair(typeOf[T](), Sum, unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(a[:n])), unsafe.Pointer(unsafe.SliceData(b[:n])), n)
}

func typeOf[T float32 | float64]() Type {
	var x T
	if unsafe.Sizeof(x) == 4 {
		return Float32
	}
	return Float64
}
