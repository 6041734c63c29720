package ccl

import (
	"fmt"
	"math/bits"
	"reflect"

	"github.com/goccl/goccl/internal/reduce"
)

// Element is the set of types that collectives move and reduce.
type Element interface {
	~uint8 | ~int32 | ~int64 | ~float32 | ~float64
}

// DType names an element type at run time.
type DType uint8

// The element types.
const (
	Uint8 DType = iota + 1
	Int32
	Int64
	Float32
	Float64
)

// DTypes returns all element types.
func DTypes() []DType { return []DType{Uint8, Int32, Int64, Float32, Float64} }

// String returns the name that ccl.yaml and error messages use, such as
// "float32".
func (d DType) String() string {
	if d < Uint8 || d > Float64 {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return d.reduce().String()
}

// Size returns the length of one element in bytes.
func (d DType) Size() int { return d.reduce().Size() }

// shift returns the binary logarithm of Size.
func (d DType) shift() uint8 { return uint8(bits.TrailingZeros(uint(d.Size()))) }

// reduce returns the type under the number that the folds know it by.
func (d DType) reduce() reduce.Type { return reduce.Type(d - Uint8) }

// DTypeOf returns the DType of T, which may be a named type.
func DTypeOf[T Element]() DType {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Uint8:
		return Uint8
	case reflect.Int32:
		return Int32
	case reflect.Int64:
		return Int64
	case reflect.Float32:
		return Float32
	default: // Element admits no other kind
		return Float64
	}
}
