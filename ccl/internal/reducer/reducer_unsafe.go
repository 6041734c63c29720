// Package reducer executes the reductions and the copies of one rank's calls.
//
// # Model
//
// A [Reducer] has the type and the operation of the current call. For each reduction its user
// names the buffers with To and From. The reducer cuts them into chunks, which internal/reduce or
// a user's function processes, so that a rank notices between two chunks that its group has
// failed. One goroutine at a time uses a Reducer. A verb allocates nothing.
package reducer

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/memory"
	"github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/transport"
)

const (
	// chunkBytes bounds the bytes, counted over all buffers, between two tests of whether the
	// group has failed.
	chunkBytes = interleave.Chunk
	// userTile is the number of bytes of every buffer that a user's operation finishes before it
	// continues with the next ones.
	userTile = min(4096, chunkBytes)
	// padBytes keep other memory off the cache lines that a call writes.
	padBytes = 128
)

// Func is an operation of a user. It stores n elements of a op b to dst, which may be a or b.
type Func func(dst, a, b unsafe.Pointer, n int)

// Reduction is the type of the elements of a call, and its operation.
type Reduction struct {
	typ        reduce.Type
	op         reduce.Op
	shift      uint8 // an element has 1<<shift bytes
	isPairwise bool  // Many reduces in the order of a balanced tree
	divisor    int   // of Avg
	user       Func  // replaces op, unless nil
}

// NewReduction returns the reduction of elements of type typ by op, which user replaces unless it
// is nil. Avg divides by divisor. With isPairwise, which no user's operation has, Many is
// reduce.Fold.
func NewReduction(typ reduce.Type, op reduce.Op, user Func, divisor int, isPairwise bool) Reduction {
	return Reduction{typ, op, uint8(bits.TrailingZeros(uint(typ.Size()))), isPairwise, divisor, user}
}

// Reducer reduces and copies the elements of one call. Its slices are as long as the group is
// large and are kept from call to call.
//
// Its verbs take the endpoint of a rank whose memory they touch, and return false if the group
// fails: a rank that gives up waits for them. Where they touch only copies or this rank's memory
// the endpoint is nil and nothing stops them. All that the call needs is there, so a later
// failure must not end it (rule payloadsSuffice).
type Reducer struct {
	Reduction
	ranks int
	chunk int // bytes of each buffer of a reduction over all ranks

	dsts, srcs []unsafe.Pointer // the positions that have been reached

	tiles memory.Scratch // for partial results of a user's operation
}

// New returns the reducer of a rank in a group of that many ranks.
func New(ranks int) Reducer {
	const pad = int(padBytes / unsafe.Sizeof(unsafe.Pointer(nil)))
	room := make([]unsafe.Pointer, pad+2*ranks+pad)[pad:]
	return Reducer{
		ranks: ranks,
		chunk: max(chunkBytes/(2*ranks), userTile) &^ 63,
		dsts:  room[:0:ranks],
		srcs:  room[ranks : ranks : 2*ranks],
	}
}

// Set starts a call.
func (f *Reducer) Set(r *Reduction) { f.Reduction = *r }

// Reset removes the buffers of the reduction before.
func (f *Reducer) Reset() { f.dsts, f.srcs = f.dsts[:0], f.srcs[:0] }

// To adds a destination.
func (f *Reducer) To(b []byte) { f.dsts = append(f.dsts, pointer(b)) }

// From adds a source.
func (f *Reducer) From(b []byte) { f.srcs = append(f.srcs, pointer(b)) }

// pointer returns the address of b's first byte; it may be nil if b is empty.
func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// inChunks calls do for each chunk of n bytes of the buffers, with its length.
func (f *Reducer) inChunks(n, chunk int, ep transport.Endpoint, do func(k int)) bool {
	for {
		if ep != nil && ep.Failed() {
			return false
		}
		k := min(chunk, n)
		do(k)
		if n -= k; n == 0 {
			return true
		}
		advance(f.dsts, k)
		advance(f.srcs, k)
	}
}

func advance(pointers []unsafe.Pointer, n int) {
	for i := range pointers {
		pointers[i] = unsafe.Add(pointers[i], n)
	}
}

// Many reduces n bytes of all sources, in order, to all destinations, with the op's epilogue.
func (f *Reducer) Many(n int, ep transport.Endpoint) bool {
	if f.user != nil {
		return f.inChunks(n, userTile, ep, f.userMany)
	}
	if f.isPairwise {
		return f.inChunks(n, f.chunk, ep, func(k int) {
			reduce.Fold(f.typ, f.op, f.dsts, f.srcs, nil, k>>f.shift, f.divisor)
		})
	}
	if n <= f.chunk && ep == nil && len(f.dsts) < f.ranks { // one chunk, into this rank's caches
		reduce.Many(f.typ, f.op, f.dsts, f.srcs, n>>f.shift, f.divisor, false)
		return true
	}
	stream := f.pastCaches(n)
	return f.inChunks(n, f.chunk, ep, func(k int) {
		reduce.Many(f.typ, f.op, f.dsts, f.srcs, k>>f.shift, f.divisor, stream)
	})
}

// pastCaches reports whether a reduction of n bytes, one rank's part, stores its results past
// the caches: the results of all ranks go to memory that was not read for them, and leave the
// caches before a rank reads them. Relative to a copy this took 1.21 to 0.86 (2 ranks, 16 MiB),
// 1.61 to 0.98 (4 ranks, 4 MiB) and 1.36 to 1.03 (4 ranks, 16 MiB) with a cache of 32 MiB.
func (f *Reducer) pastCaches(n int) bool {
	if len(f.dsts) < f.ranks || n*f.ranks*(len(f.srcs)+len(f.dsts)) < reduce.CacheBytes() {
		return false
	}
	return !slices.ContainsFunc(f.dsts, func(dst unsafe.Pointer) bool { return slices.Contains(f.srcs, dst) })
}

// Scan reduces n bytes of all sources, in order, and stores to each destination the result up
// to its source, or, if exclusive, up to the source before it.
func (f *Reducer) Scan(n int, exclusive bool, ep transport.Endpoint) bool {
	if f.user != nil {
		return f.inChunks(n, userTile, ep, func(k int) { f.userScan(k, exclusive) })
	}
	return f.inChunks(n, f.chunk, ep, func(k int) {
		reduce.Scan(f.typ, f.op, f.dsts, f.srcs, k>>f.shift, exclusive)
	})
}

// Copy copies src to dst, of the same length. work is the number of bytes that all ranks
// together touch in the call: if the caches cannot hold them, the copy bypasses the caches.
func (f *Reducer) Copy(dst, src []byte, work int, ep transport.Endpoint) bool {
	if len(src) == 0 {
		return true
	}

	stream := work > reduce.CacheBytes()
	f.Reset()
	f.To(dst)
	f.From(src)
	return f.inChunks(len(src), chunkBytes, ep, func(k int) {
		if stream {
			reduce.Many(reduce.Uint8, reduce.Sum, f.dsts, f.srcs, k, 1, true)
		} else {
			moveBytes(f.dsts[0], f.srcs[0], k)
		}
	})
}

// Pair stores a op b to dst, all of the same length.
func (f *Reducer) Pair(dst, a, b []byte, ep transport.Endpoint) bool {
	if len(dst) == 0 {
		return true
	}

	f.Reset()
	f.To(dst)
	f.From(a)
	f.From(b)
	return f.inChunks(len(dst), chunkBytes/4, ep, func(k int) {
		if f.user != nil {
			f.user(f.dsts[0], f.srcs[0], f.srcs[1], k>>f.shift)
		} else {
			reduce.Pair(f.typ, f.op, f.dsts[0], f.srcs[0], f.srcs[1], k>>f.shift)
		}
	})
}

// Epilogue applies the op's epilogue to b, memory of this rank: Avg's division.
func (f *Reducer) Epilogue(b []byte) {
	if f.op == reduce.Avg {
		reduce.Divide(f.typ, pointer(b), len(b)>>f.shift, f.divisor)
	}
}

// userMany is a chunk of Many, of at most userTile bytes.
func (f *Reducer) userMany(k int) {
	acc := f.tile(0)
	running := f.srcs[0]
	for _, src := range f.srcs[1:] {
		f.user(acc, running, src, k>>f.shift)
		running = acc
	}
	for _, dst := range f.dsts {
		moveBytes(dst, running, k)
	}
}

// userScan is a chunk of Scan, of at most userTile bytes.
func (f *Reducer) userScan(k int, exclusive bool) {
	running := f.tile(0)
	moveBytes(running, f.srcs[0], k)
	if !exclusive {
		moveBytes(f.dsts[0], running, k)
	}

	for r := 1; r < len(f.srcs); r++ {
		next := f.tile(r % 2)
		f.user(next, running, f.srcs[r], k>>f.shift)
		if exclusive {
			moveBytes(f.dsts[r], running, k)
		} else {
			moveBytes(f.dsts[r], next, k)
		}
		running = next
	}
}

// tile returns one of two tiles for partial results.
func (f *Reducer) tile(i int) unsafe.Pointer {
	return unsafe.Pointer(&f.tiles.Bytes(2 * userTile)[i*userTile])
}

// moveBytes copies n bytes between buffers that are equal or disjoint.
func moveBytes(dst, src unsafe.Pointer, n int) {
	if dst != src {
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
	}
}
