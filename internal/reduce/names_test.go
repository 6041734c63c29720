package reduce

import (
	"fmt"
	"slices"
	"testing"
)

// The numbers travel between processes, so changing one changes the protocol.
func TestNumbersAreStable(t *testing.T) {
	for number, want := range []string{
		"uint8", "int32", "int64", "float32", "float64", "float16", "bfloat16",
		"int8", "int16", "uint16", "uint32", "uint64", "complex64", "complex128", "bool", "Type(15)",
	} {
		if got := fmt.Sprint(Type(number)); got != want {
			t.Errorf("type %d is %s, want %s", number, got, want)
		}
	}
	for number, want := range []string{"sum", "avg", "product", "min", "max", "band", "bor", "bxor", "Op(8)"} {
		if got := fmt.Sprint(Op(number)); got != want {
			t.Errorf("operation %d is %s, want %s", number, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for typ, want := range []int{1, 4, 8, 4, 8, 2, 2, 1, 2, 2, 4, 8, 8, 16, 1} {
		if got := Type(typ).Size(); got != want {
			t.Errorf("%v has %d bytes, want %d", Type(typ), got, want)
		}
	}
}

// The full table: every number that a Type or an Op may have. Every defined pair has a loop in
// Go, except pairs with Avg, which is Sum and a division.
func TestDefined(t *testing.T) {
	for typ := range 256 {
		for op := range 256 {
			want := typ < len(types) && slices.Contains(opsOf(Type(typ)), Op(op))
			if got := Defined(Type(typ), Op(op)); got != want {
				t.Errorf("%v of %v: defined is %v, want %v", Op(op), Type(typ), got, want)
			}
			if typ < len(types) && op < len(ops) && Op(op) != Avg && want != (pairs[typ][op] != nil) {
				t.Errorf("%v of %v: there is a loop: %v", Op(op), Type(typ), !want)
			}
		}
	}
}
