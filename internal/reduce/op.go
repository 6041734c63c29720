package reduce

import "fmt"

// Op is the operation that makes one element of two. The numbers are stable:
// they are exchanged between processes, so new operations are only ever added
// at the end.
type Op uint8

// The operations. See the package comment for the bits they give.
const (
	Sum     Op = 0
	Avg     Op = 1 // the sum, divided once by the number of ranks
	Product Op = 2
	Min     Op = 3
	Max     Op = 4
	BAnd    Op = 5 // bit by bit
	BOr     Op = 6
	BXor    Op = 7
)

var ops = [...]string{
	Sum: "sum", Avg: "avg", Product: "product", Min: "min", Max: "max",
	BAnd: "band", BOr: "bor", BXor: "bxor",
}

// Defined reports whether elements of type t can be reduced with op: complex numbers
// have no order, only integers and bools are taken bit by bit, and bools have no arithmetic.
// It is false if either is not one of the constants.
func Defined(t Type, op Op) bool {
	if int(t) >= len(types) {
		return false
	}
	switch op {
	case Sum, Avg, Product:
		return types[t].kind != booleans
	case Min, Max:
		return types[t].kind != complexes
	case BAnd, BOr, BXor:
		return types[t].kind == integers || types[t].kind == booleans
	}
	return false
}

// String returns the operation's name, such as "sum".
func (op Op) String() string {
	if int(op) >= len(ops) {
		return fmt.Sprintf("Op(%d)", uint8(op))
	}
	return ops[op]
}
