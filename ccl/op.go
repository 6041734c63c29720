package ccl

import "fmt"

// Op is a reduction, applied element by element over the ranks' inputs in the
// order ((x0 op x1) op x2) ... of the algorithm's documentation.
type Op uint32

// The reductions. Integers wrap. Avg is Sum followed by one division by the
// number of ranks, which truncates for integers. Min and Max propagate NaN and
// order -0 below +0. The bitwise operations exist as names only: a call with
// one of them returns ErrNotImplemented before any data moves.
const (
	Sum Op = iota
	Avg
	Product
	Min
	Max
	BAnd
	BOr
	BXor
)

var opNames = [...]string{"sum", "avg", "product", "min", "max", "band", "bor", "bxor"}

// Ops returns the reductions that are implemented.
func Ops() []Op { return []Op{Sum, Avg, Product, Min, Max} }

// String returns the name that ccl.yaml and error messages use, such as "sum".
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint32(o))
}

// checkFor says why there is no such reduction of a type.
func (o Op) checkFor(coll Collective, _ DType) error {
	if o > Max {
		return fmt.Errorf("ccl: %v: operation %v is %w", coll, o, ErrNotImplemented)
	}
	return nil
}
