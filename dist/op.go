package dist

import "github.com/goccl/goccl/ccl"

// ReduceOp is a reduction: one of the constants, such as Sum, or made by PremulSum or ccl.NewOp.
type ReduceOp = ccl.Op

// The reductions. Integers wrap. Avg is Sum followed by one division by the number
// of ranks, which truncates for integers. Min and Max propagate NaN, order -0 below +0,
// and do not support complex numbers. BAnd, BOr and BXor support integers and bools, and so do
// LAnd, LOr and LXor: of integers, all but 0 are true, and the result is 0 or 1. An op that a type
// does not support is rejected with ErrNotImplemented.
const (
	Sum     = ccl.Sum
	Avg     = ccl.Avg
	Product = ccl.Product
	Min     = ccl.Min
	Max     = ccl.Max
	BAnd    = ccl.BAnd
	BOr     = ccl.BOr
	BXor    = ccl.BXor
	LAnd    = ccl.LAnd
	LOr     = ccl.LOr
	LXor    = ccl.LXor
)

// PremulSum returns the reduction that multiplies every rank's elements by
// factor, the same on all ranks, and sums them; see ccl.PremulSum.
func PremulSum(factor float64) ReduceOp { return ccl.PremulSum(factor) }
