package ccl

import (
	"fmt"
	"hash/fnv"
	"math"
	"sync"

	"github.com/goccl/goccl/internal/reduce"
)

// Op is a reduction, applied element by element over the ranks' inputs in the
// order ((x0 op x1) op x2) ... of the algorithm's documentation. Ops are compared
// with ==. The constants are built in; PremulSum and NewOp make others.
type Op uint32

// The reductions. Integers wrap. Avg is Sum followed by one division by the number of
// ranks, which truncates for integers. Min and Max propagate NaN and order -0 below +0;
// complex numbers have no order. The bitwise operations are for integers. A call with
// an operation that its type does not have returns ErrNotImplemented before any data
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
)

var opNames = [...]string{"sum", "avg", "product", "min", "max", "band", "bor", "bxor"}

// Ops returns the reductions that are built in.
func Ops() []Op { return []Op{Sum, Avg, Product, Min, Max, BAnd, BOr, BXor} }

// String returns the name that ccl.yaml and error messages use, such as "sum".
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	if m := o.made(); m != nil {
		return m.name
	}
	return fmt.Sprintf("op(%d)", uint32(o))
}

// Defined reports whether elements of type d can be reduced by o.
func (o Op) Defined(d DType) bool { return o.checkFor(CollAllReduce, d) == nil }

// PremulSum returns the operation that multiplies every rank's input by factor and
// sums up: each product is rounded to the type, and then it is Sum. Of complex numbers
// both parts are multiplied; for integers the factor has to be an integer that the
// type has. All ranks give the same factor.
//
// Every factor that a program uses is remembered, in some hundred bytes; a program
// that needs a new one for each step had better multiply by itself.
func PremulSum(factor float64) Op {
	madeOps.RLock()
	o, ok := madeOps.byFactor[math.Float64bits(factor)]
	madeOps.RUnlock()
	if ok {
		return o
	}
	o = makeOp(&madeOp{
		name:   fmt.Sprintf("premul_sum(%v)", factor),
		factor: factor, scales: true, commutes: true,
	})
	madeOps.Lock()
	defer madeOps.Unlock()
	if madeOps.byFactor == nil {
		madeOps.byFactor = map[uint64]Op{}
	}
	madeOps.byFactor[math.Float64bits(factor)] = o
	return o
}

// madeOp is an operation that was made while the program ran.
type madeOp struct {
	name     string
	id       uint32 // stands for the name in all processes
	factor   float64
	scales   bool // factor * x, summed up
	commutes bool
	dtype    DType // of a user's operation
	run      userFold
}

// madeOps are all of them. Op firstMade+i is number i.
var madeOps struct {
	sync.RWMutex
	all      []*madeOp
	byName   map[string]Op
	byFactor map[uint64]Op // of PremulSum, by the factor's bits
}

const firstMade = 1 << 8

// makeOp returns the operation of m's name, which is m unless there is one.
func makeOp(m *madeOp) Op {
	madeOps.Lock()
	defer madeOps.Unlock()
	if o, ok := madeOps.byName[m.name]; ok {
		return o
	}
	h := fnv.New32a()
	h.Write([]byte(m.name))
	m.id = h.Sum32() | 1<<31
	o := Op(firstMade + len(madeOps.all))
	madeOps.all = append(madeOps.all, m)
	if madeOps.byName == nil {
		madeOps.byName = map[string]Op{}
	}
	madeOps.byName[m.name] = o
	return o
}

// made returns what was made of o, nil if it is built in, or no operation.
func (o Op) made() *madeOp {
	if o < firstMade {
		return nil
	}
	madeOps.RLock()
	defer madeOps.RUnlock()
	if i := int(o - firstMade); i < len(madeOps.all) {
		return madeOps.all[i]
	}
	return nil
}

// folds returns the operation that kernels fold with.
func (o Op) folds() Op {
	if m := o.made(); m != nil && m.scales {
		return Sum
	}
	return o
}

// id returns what stands for o in all processes.
func (o Op) id() uint32 {
	if m := o.made(); m != nil {
		return m.id
	}
	return uint32(o)
}

// opText returns the name of the operation that has an id.
func opText(id uint32) string {
	if id < firstMade {
		return Op(id).String()
	}
	madeOps.RLock()
	defer madeOps.RUnlock()
	for _, m := range madeOps.all {
		if m.id == id {
			return m.name
		}
	}
	return fmt.Sprintf("an operation that this process has not made (%08x)", id)
}

// commutes reports whether o gives the same whatever the order of the ranks, but for
// rounding.
func (o Op) commutes() bool {
	m := o.made()
	return m == nil || m.commutes
}

// checkFor says why there is no such reduction of a type.
func (o Op) checkFor(coll Collective, d DType) error {
	if o <= Product || o <= Max && d <= BFloat16 {
		return nil // the usual case
	}
	why := ""
	integer, signed := d.integer()
	m := o.made()
	switch {
	case m == nil && o <= BXor:
		if reduce.Defined(d.reduce(), reduce.Op(o)) {
			return nil
		}
		why = "only integers have it"
		if o == Min || o == Max {
			why = "complex numbers have no order"
		}
	case m == nil:
		why = "there is no such operation"
	case m.scales && integer:
		if fitsInteger(m.factor, d.Size()*8, signed) {
			return nil
		}
		why = "the factor is not an integer of that type"
	case m.scales, m.dtype == d:
		return nil
	default:
		why = fmt.Sprintf("it was made for %v", m.dtype)
	}
	return fmt.Errorf("ccl: %v: operation %v of %v is %w: %s", coll, o, d, ErrNotImplemented, why)
}

// fitsInteger reports whether x is an integer of so many bits.
func fitsInteger(x float64, bits int, signed bool) bool {
	lo, hi := 0.0, math.Ldexp(1, bits)
	if signed {
		lo, hi = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
	}
	return x == math.Trunc(x) && x >= lo && x < hi
}
