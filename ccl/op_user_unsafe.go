package ccl

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/transport"
)

// NewOp makes f an operation on elements of type T. f stores a[i] op b[i] to dst[i],
// for slices of one length of which dst may be a or b; it may look at more than one element
// at a time, but where a vector is cut is not for it to say. The operation is
// associative, but for rounding; commutative says whether a op b is b op a too. One
// that is not is refused by kernels that do not keep the order of ranks, with
// ErrNotImplemented.
//
// f may be called by several goroutines at once and keeps nothing. All ranks use
// the same f; across processes they know it by its name. NewOp panics if the name is
// taken, like Register: call it where a package's variables are initialised.
func NewOp[T Element](name string, commutative bool, f func(dst, a, b []T)) Op {
	d := DTypeOf[T]()
	m := &userOp{name: name, dtype: d, commutes: commutative}
	m.run = func(dst, a, b unsafe.Pointer, n int) {
		f(unsafe.Slice((*T)(dst), n), unsafe.Slice((*T)(a), n), unsafe.Slice((*T)(b), n))
	}
	switch {
	case name == "" || f == nil:
		panic("ccl: NewOp needs a name and a function")
	case slices.ContainsFunc(Ops(), func(o Op) bool { return o.String() == name }):
		panic(fmt.Sprintf("ccl: NewOp: the operation %s is built in", name))
	}
	o, ok := addUserOp(m)
	if !ok {
		panic(fmt.Sprintf("ccl: NewOp: the operation %s was made before", name))
	}
	return o
}

// userFold stores n elements of a op b to dst, which may be a or b.
type userFold func(dst, a, b unsafe.Pointer, n int)

// userTile is the stretch of every buffer that a user's operation finishes before it
// goes on.
const userTile = 4096

// manyUser is many for a user's operation.
func (f *folder) manyUser(n int, ep transport.Endpoint) bool {
	acc := f.tile(0)
	for {
		if stopped(ep) {
			return false
		}
		k := min(userTile, n)
		running := f.srcs[0]
		for _, src := range f.srcs[1:] {
			f.user(acc, running, src, k>>f.shift)
			running = acc
		}
		for _, dst := range f.dsts {
			moveBytes(dst, running, k)
		}
		if n -= k; n == 0 {
			return true
		}
		advance(f.dsts, k)
		advance(f.srcs, k)
	}
}

// scanUser is scan for a user's operation.
func (f *folder) scanUser(n int, exclusive bool, ep transport.Endpoint) bool {
	for {
		if stopped(ep) {
			return false
		}
		k := min(userTile, n)
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
		if n -= k; n == 0 {
			return true
		}
		advance(f.dsts, k)
		advance(f.srcs, k)
	}
}

// tile returns one of two stretches for running folds, which the folder keeps.
func (f *folder) tile(i int) unsafe.Pointer {
	if f.tiles == nil {
		f.tiles = alignedBytes(2 * userTile)
	}
	return unsafe.Pointer(&f.tiles[i*userTile])
}

// moveBytes copies n bytes between buffers that are equal or disjoint.
func moveBytes(dst, src unsafe.Pointer, n int) {
	if dst != src {
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
	}
}
