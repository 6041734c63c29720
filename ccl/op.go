package ccl

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/ccl/internal/reducer"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/internal/text"
)

// Op is a reduction. It is applied element by element over the ranks' inputs, in the order
// ((x0 op x1) op x2) ... that the algorithm documents. Ops are compared with ==. The constants
// are built in; PremulSum, AvgOf and NewOp make others.
type Op uint64

// The built-in reductions. Integers wrap. Avg is Sum followed by one division by the number of
// ranks, which truncates for integers; of float16 the sum is held in float32, since it may be too
// large where the mean is not. Min and Max propagate NaN and order -0 below +0; complex numbers
// have no order. The bitwise operations are for integers and bools.
//
// The logical operations are for integers and bools too. Of integers they take 0 as false and all
// others as true; the result is 0 or 1, on one rank too. Of bools they are the bitwise operations,
// which with Min and Max are all that bools have.
//
// A call with an operation that its type does not have returns ErrNotImplemented before any data
// moves.
const (
	Sum Op = iota
	Avg
	Product
	Min
	Max
	BAnd
	BOr
	BXor
	LAnd
	LOr
	LXor
)

// isBuiltin reports whether o is one of the constants.
func (o Op) isBuiltin() bool { return o <= LXor }

// isLogical reports whether o takes integers as true or false.
func (o Op) isLogical() bool { return LAnd <= o && o <= LXor }

// builtin returns the number in package reduce of an operation that is built in: its own, and for a
// logical operation that of the bitwise one, which has the same result on inputs that are 0 or 1.
func (o Op) builtin() reduce.Op {
	if o.isLogical() {
		return reduce.Op(o - LAnd + BAnd)
	}
	return reduce.Op(o)
}

// The other Ops. From firstUser on, an Op is the index of an operation of NewOp. From firstDivisor
// on, it is an AvgOf. From firstFactor on, it is a PremulSum: the bits of the factor xor nanBits.
// The numbers below firstFactor would be NaNs, so every factor has a number of its own.
const (
	firstUser    Op = 1 << 8
	firstDivisor Op = 1 << 50
	firstFactor  Op = 1 << 51
	nanBits      Op = 0x7ff8 << 48
)

// Ops returns the built-in reductions.
func Ops() []Op {
	return []Op{Sum, Avg, Product, Min, Max, BAnd, BOr, BXor, LAnd, LOr, LXor}
}

// PremulSum returns the operation that multiplies every rank's input by factor and then sums:
// each product is rounded to the type. Of complex numbers both parts are multiplied. For integers
// the factor must be an integer of the type. All ranks must give the same factor.
func PremulSum(factor float64) Op {
	if math.IsNaN(factor) {
		return math.MaxUint64 ^ nanBits // a NaN whose number is above firstFactor
	}
	return Op(math.Float64bits(factor)) ^ nanBits
}

// AvgOf returns Avg with another divisor than the number of ranks, from 1 to 1<<31-1: the mean of n
// contributions, of which each rank's input is a sum. All ranks must give the same n.
func AvgOf(n int) Op {
	if n < 1 || n > math.MaxInt32 {
		n = 0
	}
	return firstDivisor + Op(n)
}

// divisor returns the divisor of an AvgOf.
func (o Op) divisor() (n int, ok bool) {
	return int(o - firstDivisor), firstDivisor <= o && o < firstFactor
}

// divisorIn returns what the operation divides by in a group of that many ranks, if it divides.
func (o Op) divisorIn(ranks int) int {
	if n, ok := o.divisor(); ok {
		return n
	}
	return ranks
}

// isAvg reports whether o divides.
func (o Op) isAvg() bool { return o.kernelOp() == Avg }

// factor returns the factor of a PremulSum.
func (o Op) factor() (factor float64, ok bool) {
	return math.Float64frombits(uint64(o ^ nanBits)), o >= firstFactor
}

// userOp is an operation of NewOp.
type userOp struct {
	name     string
	commutes bool
	dtype    DType
	run      reducer.Func
}

// userOps are the operations of NewOp. They are added by name, once each, and never removed.
var userOps struct {
	interleave.RWMutex
	all []*userOp
}

// addUserOp returns the Op of m. It reports false if there is an operation of that name.
func addUserOp(m *userOp) (o Op, ok bool) {
	userOps.Lock()
	defer userOps.Unlock()
	if slices.ContainsFunc(userOps.all, func(other *userOp) bool { return other.name == m.name }) {
		return 0, false
	}
	userOps.all = append(userOps.all, m)
	return firstUser + Op(len(userOps.all)-1), true
}

// user returns the operation of NewOp that o is, nil if it is another.
func (o Op) user() *userOp {
	if o < firstUser || o >= firstDivisor {
		return nil
	}
	userOps.RLock()
	defer userOps.RUnlock()
	if i := o - firstUser; i < Op(len(userOps.all)) {
		return userOps.all[i]
	}
	return nil
}

// String returns the name that ccl.yaml and error messages use, such as "sum".
func (o Op) String() string {
	if o.isLogical() {
		return [...]string{"land", "lor", "lxor"}[o-LAnd]
	}
	if o.isBuiltin() {
		return reduce.Op(o).String()
	}

	if factor, ok := o.factor(); ok {
		return fmt.Sprintf("premul_sum(%v)", factor)
	}
	if n, ok := o.divisor(); ok {
		return fmt.Sprintf("avg_of(%d)", n)
	}
	if m := o.user(); m != nil {
		return m.name
	}
	return fmt.Sprintf("op(%d)", uint64(o))
}

// MarshalText returns the name, such as "sum".
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// opSynonyms are what other libraries call operations.
var opSynonyms = text.Synonyms{
	"add": "sum", "mean": "avg", "average": "avg", "mul": "product", "prod": "product", "minimum": "min", "maximum": "max",
	"and": "band", "or": "bor", "xor": "bxor",
}

// UnmarshalText parses the name of one of Ops. The error for an unknown name suggests the nearest
// one, or the one that other libraries call so: avg for mean.
func (o *Op) UnmarshalText(name []byte) (err error) {
	*o, err = text.Named("op", string(name), Ops(), opSynonyms)
	return err
}

// kernelOp returns the operation that kernels see: a PremulSum is a Sum of inputs that were
// multiplied before the call, and an AvgOf is Avg. The inputs of a logical operation were made 0
// and 1.
func (o Op) kernelOp() Op {
	switch {
	case o >= firstFactor:
		return Sum
	case o >= firstDivisor:
		return Avg
	}
	return o
}

// reduction returns o's number in package reduce, or the function that replaces it.
func (o Op) reduction() (op reduce.Op, user reducer.Func) {
	if o.isBuiltin() {
		return o.builtin(), nil
	}
	return 0, o.user().run
}

// commutes reports whether the result is the same for every order of the ranks, except rounding.
func (o Op) commutes() bool {
	m := o.user()
	return m == nil || m.commutes
}

// hashed is set in the fingerprintID of operations that are not built in.
const hashed = 1 << 31

// fingerprintID returns what stands for o in fingerprints, the same in all processes: the number
// of a built-in operation, or a hash.
func (o Op) fingerprintID() uint32 {
	if o >= firstDivisor {
		return uint32(fingerprint.Mix(uint64(o))) | hashed
	}
	m := o.user()
	if m == nil {
		return uint32(o)
	}
	h := fnv.New32a()
	h.Write([]byte(m.name))
	return h.Sum32() | hashed
}

// Check returns why elements of type d cannot be reduced by o in calls of a collective, an error in
// which errors.Is finds ErrNotImplemented; nil if they can.
func (o Op) Check(coll Collective, d DType) error {
	if o.isAvg() && (coll == CollScan || coll == CollExScan) {
		return fmt.Errorf("ccl: %v: operation avg is %w: how many inputs come together differs from rank to rank", coll, ErrNotImplemented)
	}

	if o.isBuiltin() && reduce.Defined(d.reduce(), o.builtin()) {
		return nil
	}

	n, isMean := o.divisor()
	if isMean && n > 0 {
		return Avg.Check(coll, d)
	}

	why := "there is no such operation"
	factor, premul := o.factor()
	m := o.user()

	switch {
	case isMean:
		why = "the divisor is not from 1 to 2147483647"
	case d == Bool && (o.isBuiltin() || premul):
		why = "bools are neither added nor multiplied"

	case o == Min || o == Max:
		why = "complex numbers have no order"
	case o.isBuiltin():
		why = "only integers and bools have it"
	case premul && !reduce.CanScale(d.reduce(), factor):
		why = "the factor is not an integer of that type"
	case premul, m != nil && m.dtype == d:
		return nil
	case m != nil:
		why = fmt.Sprintf("it was made for %v", m.dtype)
	}

	return fmt.Errorf("ccl: %v: operation %v of %v is %w: %s", coll, o, d, ErrNotImplemented, why)
}
