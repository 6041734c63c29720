package ccl

import (
	"fmt"
	"slices"
	"unsafe"
)

// NewOp makes f an operation on elements of type T. f stores a[i] op b[i] to dst[i], for slices of
// one length; dst may be a or b.
//
// f may combine neighbouring elements, but must not depend on where a vector is cut. The operation
// must be associative, except for rounding. commutative states that a op b equals b op a. Kernels
// that do not keep the order of ranks reject an operation that does not commute, with
// ErrNotImplemented.
//
// Several goroutines may call f at once; f must not keep its arguments or any state between calls.
// All ranks must use the same f: processes compare operations by their names. NewOp panics if the
// name is taken, like Register: call it where a package's variables are initialised.
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
