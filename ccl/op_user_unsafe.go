package ccl

import (
	"fmt"
	"slices"
	"unsafe"
)

// NewOp makes f an operation on elements of type T. f stores a[i] op b[i] to dst[i], for slices
// of one length; dst may be a or b. f may combine neighbouring elements, but must not depend on
// where a vector is cut. The operation must be associative, except for rounding. commutative
// states that a op b equals b op a. Kernels that do not keep the order of ranks refuse an
// operation that does not commute, with ErrNotImplemented.
//
// Several goroutines may call f at once; f must not keep its arguments or any state between calls. All ranks must use the
// same f: processes compare operations by their names. NewOp panics if the name is taken, like
// Register: call it where a package's variables are initialised.
func NewOp[T Element](name string, commutative bool, f func(dst, a, b []T)) Op {
	switch {
	case name == "" || f == nil:
		panic("ccl: NewOp needs a name and a function")
	case slices.ContainsFunc(Ops(), func(o Op) bool { return o.String() == name }):
		panic(fmt.Sprintf("ccl: NewOp: the operation %s is built in", name))
	}
	o, ok := addUserOp(&userOp{name: name, dtype: DTypeOf[T](), commutes: commutative, run: func(dst, a, b unsafe.Pointer, n int) {
		f(unsafe.Slice((*T)(dst), n), unsafe.Slice((*T)(a), n), unsafe.Slice((*T)(b), n))
	}})
	if !ok {
		panic(fmt.Sprintf("ccl: NewOp: the operation %s was made before", name))
	}
	return o
}

// userReduce stores n elements of a op b to dst, which may be a or b.
type userReduce func(dst, a, b unsafe.Pointer, n int)

// userTile is the number of bytes of every buffer that a user's operation finishes before it
// continues with the next ones.
const userTile = 4096

// userMany is a chunk of many, of at most userTile bytes.
func (f *reducer) userMany(k int) {
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

// userScan is a chunk of scan, of at most userTile bytes.
func (f *reducer) userScan(k int, exclusive bool) {
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
func (f *reducer) tile(i int) unsafe.Pointer {
	return unsafe.Pointer(&f.tiles.bytes(2 * userTile)[i*userTile])
}

// moveBytes copies n bytes between buffers that are equal or disjoint.
func moveBytes(dst, src unsafe.Pointer, n int) {
	if dst != src {
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
	}
}
