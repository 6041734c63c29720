package tool

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// goTypes are the Go types that have a DType.
var goTypes = []struct {
	name  string
	dtype ccl.DType
}{
	{"uint8", ccl.DTypeOf[uint8]()},
	{"int8", ccl.DTypeOf[int8]()},
	{"uint16", ccl.DTypeOf[uint16]()},
	{"int16", ccl.DTypeOf[int16]()},
	{"uint32", ccl.DTypeOf[uint32]()},
	{"int32", ccl.DTypeOf[int32]()},
	{"uint64", ccl.DTypeOf[uint64]()},
	{"uint", ccl.DTypeOf[uint]()},
	{"uintptr", ccl.DTypeOf[uintptr]()},
	{"int64", ccl.DTypeOf[int64]()},
	{"int", ccl.DTypeOf[int]()},
	{"float32", ccl.DTypeOf[float32]()},
	{"float64", ccl.DTypeOf[float64]()},
	{"half.Float16", ccl.DTypeOf[half.Float16]()},
	{"half.BFloat16", ccl.DTypeOf[half.BFloat16]()},
	{"complex64", ccl.DTypeOf[complex64]()},
	{"complex128", ccl.DTypeOf[complex128]()},
	{"bool", ccl.DTypeOf[bool]()},
}

const aboutTypes = `The element types, by their names in ccl.yaml, and the operations of each. Collectives that only move data take all types;
all_reduce, reduce, reduce_scatter, scan and exscan take an operation. An operation that a type does not have is rejected before
anything is sent; errors.Is finds ccl.ErrNotImplemented.`

// typeNotes are rules that the table does not show. A test checks each.
var typeNotes = [][]string{
	{"about", ""},
	{"avg", "The sum, then one division by the number of ranks, which truncates integers toward zero. Scans do not have it, because the number of inputs differs from rank to rank."},
	{"integers", "Sums and products wrap around, as in Go; so does the sum that avg divides."},
	{"band, bor, bxor", "Bit by bit, on signed and unsigned integers."},
	{"land, lor, lxor", "Integers other than 0 are true; the result is 0 or 1, on one rank too."},
	{"bool", "False is below true. With defaults.debug, bytes other than 0 and 1 are refused."},
	{"NaN", "If any rank has one, the result is one, for min and max too. Which of several is unspecified."},
	{"-0", "Min and max order it below +0. A sum of -0 alone is -0, because a reduction starts with the first input, not with zero."},
	{"float16, bfloat16", "Reduced in float32, and rounded to nearest even when a result is stored: once by direct, at every step by algorithms that send partial results, except in means of float16, whose sums may be too large: all round those once. Overflow becomes infinity; subnormals stay."},
	{"complex64, complex128", "No order, so no min and max; the product of a+bi and c+di is (ac-bd)+(ad+bc)i, and avg divides both parts."},
	{"speed", "With AVX2 these reductions are in assembly: all of float32, float64, float16, bfloat16, int32, int64, uint8 and bool; band, bor and bxor of all integers; sums and products of int8, uint32 and uint64; complex sums. All others are loops in Go, which cost more than a memory copy: up to 10 times as much in the caches. go test -bench Pair ./internal/reduce prints the figures."},
	{"named types", "Like their underlying type, except types made of uint16: those do not compile, because such a type is often a 16-bit float. half.AsFloat16 and half.AsBFloat16 view their memory as halves."},
	{"ccl.PremulSum(f)", "For all types but bool: every input times f, rounded to the type, then the sum. Both parts of a complex number are multiplied. For integers f must be a value of the type."},
	{"ccl.NewOp", "A user-defined operation, for one type."},
}

func describeTypes(w io.Writer, c *explainCommand) error {
	p := c.page("--types")
	p.heading(1, "Types and operations")
	p.paragraph(aboutTypes)
	head := []string{"type", "in Go", "bytes"}
	for _, op := range ccl.Ops() {
		head = append(head, op.String())
	}

	rows := [][]string{head}
	for _, d := range ccl.DTypes() {
		row := []string{d.String(), strings.Join(goNames(d), ", "), strconv.Itoa(d.Size())}
		for _, op := range ccl.Ops() {
			row = append(row, defined(op, d))
		}

		last := rows[len(rows)-1]
		if !slices.Equal(last[3:], row[3:]) {
			rows = append(rows, row)
			continue
		}
		for i := range 3 { // one row for neighbours with the same operations
			last[i] += ", " + row[i]
		}
	}
	p.table(rows)
	p.heading(2, "Rules of the operations")
	p.table(typeNotes)
	return p.print(w)
}

// goNames returns the Go types that have a DType.
func goNames(d ccl.DType) (names []string) {
	for _, t := range goTypes {
		if t.dtype == d {
			names = append(names, t.name)
		}
	}
	return names
}

// defined returns the cell for an operation of a type.
func defined(op ccl.Op, d ccl.DType) string {
	switch {
	case op.Check(ccl.CollAllReduce, d) != nil:
		return "-"
	case op.Check(ccl.CollScan, d) != nil:
		return "not scans"
	}
	return "yes"
}
