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
)

var ops = [...]string{Sum: "sum", Avg: "avg", Product: "product", Min: "min", Max: "max"}

// String returns the operation's name, such as "sum".
func (op Op) String() string {
	if int(op) >= len(ops) {
		return fmt.Sprintf("Op(%d)", uint8(op))
	}
	return ops[op]
}
