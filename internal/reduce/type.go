package reduce

import "fmt"

// Type is the type of a buffer's elements. The numbers are stable: they are
// exchanged between processes, so new types are only ever added at the end.
type Type uint8

// The element types.
const (
	Uint8    Type = 0
	Int32    Type = 1
	Int64    Type = 2
	Float32  Type = 3
	Float64  Type = 4
	Float16  Type = 5 // IEEE 754 binary16
	BFloat16 Type = 6 // the upper half of a float32
)

var types = [...]struct {
	name string
	size int
}{
	Uint8:    {"uint8", 1},
	Int32:    {"int32", 4},
	Int64:    {"int64", 8},
	Float32:  {"float32", 4},
	Float64:  {"float64", 8},
	Float16:  {"float16", 2},
	BFloat16: {"bfloat16", 2},
}

// Size returns the bytes that one element occupies.
func (t Type) Size() int { return types[t].size }

// half reports whether t is Float16 or BFloat16, which are folded in float32.
func (t Type) half() bool { return t == Float16 || t == BFloat16 }

// String returns the name of the type, such as "float32".
func (t Type) String() string {
	if int(t) >= len(types) {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return types[t].name
}

// number is what the loops are generic over: the Go type of each [Type] that Go can
// do arithmetic on.
type number interface {
	uint8 | int32 | int64 | float32 | float64
}
