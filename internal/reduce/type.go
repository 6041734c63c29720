package reduce

import "fmt"

// Type is the type of a buffer's elements. Processes exchange the numbers, so they are stable:
// new types are added at the end.
type Type uint8

// The element types.
const (
	Uint8      Type = 0
	Int32      Type = 1
	Int64      Type = 2
	Float32    Type = 3
	Float64    Type = 4
	Float16    Type = 5 // IEEE 754 binary16
	BFloat16   Type = 6 // the upper half of a float32
	Int8       Type = 7
	Int16      Type = 8
	Uint16     Type = 9
	Uint32     Type = 10
	Uint64     Type = 11
	Complex64  Type = 12 // two float32s: the real part and the imaginary one
	Complex128 Type = 13 // two float64s
	Bool       Type = 14 // a byte that is 0 or 1, as Go has it
)

var types = [...]struct {
	name string
	size int
	kind kind
}{
	Uint8:      {"uint8", 1, integers},
	Int32:      {"int32", 4, integers},
	Int64:      {"int64", 8, integers},
	Float32:    {"float32", 4, floats},
	Float64:    {"float64", 8, floats},
	Float16:    {"float16", 2, halfFloats},
	BFloat16:   {"bfloat16", 2, halfFloats},
	Int8:       {"int8", 1, integers},
	Int16:      {"int16", 2, integers},
	Uint16:     {"uint16", 2, integers},
	Uint32:     {"uint32", 4, integers},
	Uint64:     {"uint64", 8, integers},
	Complex64:  {"complex64", 8, complexes},
	Complex128: {"complex128", 16, complexes},
	Bool:       {"bool", 1, booleans},
}

// A kind groups the types that have the same operations.
type kind uint8

const (
	integers kind = iota
	floats
	halfFloats // reduced in float32
	complexes
	booleans
)

// Size returns the length of an element in bytes.
func (t Type) Size() int { return types[t].size }

// half reports whether t is Float16 or BFloat16, which are reduced in float32.
func (t Type) half() bool { return types[t].kind == halfFloats }

// String returns the name of the type, such as "float32".
func (t Type) String() string {
	if int(t) >= len(types) {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return types[t].name
}

// Constraints for the type parameters of the loops: the types that have arithmetic in Go.
type (
	integer interface {
		int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
	}
	float  interface{ float32 | float64 }
	number interface{ integer | float }
)
