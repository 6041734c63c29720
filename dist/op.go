package dist

import "github.com/goccl/goccl/ccl"

// ReduceOp is a reduction. Those that this package does not name are made by
// ccl.NewOp.
type ReduceOp = ccl.Op

// The reductions. Integers wrap; Avg is Sum and then one division by the number
// of ranks, which truncates for integers; Min and Max propagate NaN and order
// -0 below +0, and complex numbers have no order; the bitwise ones are for
// integers. An op that a type does not have is refused with ErrNotImplemented.
const (
	Sum     = ccl.Sum
	Avg     = ccl.Avg
	Product = ccl.Product
	Min     = ccl.Min
	Max     = ccl.Max
	BAnd    = ccl.BAnd
	BOr     = ccl.BOr
	BXor    = ccl.BXor
)

// PremulSum returns the reduction that multiplies every rank's elements by
// factor, which is the same on all ranks, and sums up; see ccl.PremulSum.
func PremulSum(factor float64) ReduceOp { return ccl.PremulSum(factor) }
