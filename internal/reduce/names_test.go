package reduce

import (
	"fmt"
	"testing"
)

// The numbers travel between processes, so that a change of one is a change of
// protocol.
func TestNumbersAreStable(t *testing.T) {
	for number, want := range []string{"uint8", "int32", "int64", "float32", "float64", "float16", "bfloat16", "Type(7)"} {
		if got := fmt.Sprint(Type(number)); got != want {
			t.Errorf("type %d is %s, want %s", number, got, want)
		}
	}
	for number, want := range []string{"sum", "avg", "product", "min", "max", "Op(5)"} {
		if got := fmt.Sprint(Op(number)); got != want {
			t.Errorf("operation %d is %s, want %s", number, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for typ, want := range map[Type]int{Uint8: 1, Int32: 4, Int64: 8, Float32: 4, Float64: 8, Float16: 2, BFloat16: 2} {
		if got := typ.Size(); got != want {
			t.Errorf("%v has %d bytes, want %d", typ, got, want)
		}
	}
}
