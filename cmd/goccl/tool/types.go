package tool

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/half"
)

// goTypes are the types of Go that there is a DType of.
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
}

const aboutTypes = `These are the types of elements, by their names in ccl.yaml, and the operations that each has.
What only moves elements takes all types; all_reduce, reduce, reduce_scatter, scan and exscan take an operation.
One that a type does not have is refused before anything is sent, with an error that ccl.ErrNotImplemented is found in.`

// typeNotes are what the table cannot say. A test holds the library to each.
var typeNotes = [][]string{
	{"about", ""},
	{"avg", "The sum, and then one division by the number of ranks, which truncates integers toward zero. Scans do not have it: how many inputs come together differs from rank to rank."},
	{"integers", "Sums and products wrap around, as in Go; so does the sum that avg divides."},
	{"band, bor, bxor", "Bit by bit, of integers, whatever their signs."},
	{"NaN", "If any rank has one, the result is one, also of min and max. Which of several it is, is open."},
	{"-0", "Min and max take it for less than +0. A sum of nothing but -0 is -0: a fold starts with the first input, not with a zero."},
	{"float16, bfloat16", "Folded in float32, and rounded to nearest even where a result is stored: by direct once, by algorithms that send partial results at every step. What is too large becomes an infinity; subnormals stay."},
	{"complex64, complex128", "No order, and so no min and max; the product of a+bi and c+di is (ac-bd)+(ad+bc)i, and avg divides both parts."},
	{"speed", "Reductions of float32, float64, float16, bfloat16, int32, int64 and uint8 are in assembly where the processor has AVX2, as are band, bor and bxor of all integers, sums and products of int8, uint32 and uint64, and complex sums. All else is a loop in Go, which costs more than a memory copy: up to 10 times as much in the caches. go test -bench Pair ./internal/reduce prints the figures."},
	{"named types", "Like the type that they are made of; but those made of uint16 are refused by the compiler, since such a type is often a float of 16 bits. half.AsFloat16 and half.AsBFloat16 show their memory as halves."},
	{"ccl.PremulSum(f)", "Of all types: every input times f, rounded to the type, and then the sum. Of complex numbers both parts are multiplied; of integers f has to be one that the type has."},
	{"ccl.NewOp", "An operation of your own, for the one type that it is made for."},
}

// describeTypes prints the table of types and operations.
func describeTypes(w io.Writer, form page) error {
	var b bytes.Buffer
	form.begin(&b, "--types")
	form.heading(&b, 1, "Types and operations")
	form.paragraph(&b, aboutTypes)
	head := []string{"type", "in Go", "bytes"}
	for _, op := range ccl.Ops() {
		head = append(head, op.String())
	}
	rows := [][]string{head}
	for _, d := range ccl.DTypes() {
		var names []string
		for _, t := range goTypes {
			if t.dtype == d {
				names = append(names, t.name)
			}
		}
		row := []string{d.String(), strings.Join(names, ", "), strconv.Itoa(d.Size())}
		for _, op := range ccl.Ops() {
			row = append(row, defined(op, d))
		}
		rows = append(rows, row)
	}
	form.table(&b, rows)
	form.heading(&b, 2, "What comes of it")
	form.table(&b, typeNotes)
	_, err := w.Write(append(bytes.TrimRight(b.Bytes(), "\n"), '\n'))
	return err
}

// defined says which of the reductions of a type an operation has.
func defined(op ccl.Op, d ccl.DType) string {
	switch {
	case measure.Undefined(ccl.CollAllReduce, op, d) != nil:
		return "-"
	case measure.Undefined(ccl.CollScan, op, d) != nil:
		return "not scans"
	}
	return "yes"
}
