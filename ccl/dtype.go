package ccl

import (
	"fmt"
	"math/bits"
	"reflect"

	"github.com/goccl/goccl/half"
	"github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/internal/text"
)

// Element is the set of types that collectives move and reduce: bool, all integers, floats and
// complex numbers, types named after them, and the two floats of 16 bits. Types named after uint16
// are not in it: such a type is often a float of 16 bits, which must not be summed as an integer
// (see half.AsFloat16 and half.AsBFloat16).
//
// docs/reference/types.md is the table of the operations of each type.
type Element interface {
	~bool | ~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | half.Float16 | half.BFloat16 |
		~complex64 | ~complex128
}

// DType is an element type at run time. int, uint and uintptr are Int64 and Uint64, or Int32 and
// Uint32 on machines of 32 bits.
type DType uint8

// The element types.
const (
	Uint8 DType = iota + 1
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Uint64
	Int64
	Float32
	Float64
	Float16  // of half.Float16
	BFloat16 // of half.BFloat16
	Complex64
	Complex128
	Bool // a byte, 0 or 1
)

// DTypes returns all element types.
func DTypes() []DType {
	var all []DType
	for d := Uint8; d <= Bool; d++ {
		all = append(all, d)
	}
	return all
}

var reduceTypes = [...]reduce.Type{
	Uint8: reduce.Uint8, Int8: reduce.Int8, Uint16: reduce.Uint16, Int16: reduce.Int16,
	Uint32: reduce.Uint32, Int32: reduce.Int32, Uint64: reduce.Uint64, Int64: reduce.Int64,
	Float16: reduce.Float16, BFloat16: reduce.BFloat16, Float32: reduce.Float32, Float64: reduce.Float64,
	Complex64: reduce.Complex64, Complex128: reduce.Complex128,
	Bool: reduce.Bool,
}

// String returns the name that ccl.yaml and error messages use, such as
// "float32".
func (d DType) String() string {
	if d < Uint8 || d > Bool {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return d.reduce().String()
}

// MarshalText returns the name, such as "float32".
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// dtypeSynonyms are what torch, and Go, call element types.
var dtypeSynonyms = text.Synonyms{
	"half": "float16", "fp16": "float16", "f16": "float16", "bf16": "bfloat16",
	"float": "float32", "fp32": "float32", "f32": "float32", "double": "float64", "fp64": "float64", "f64": "float64",
	"byte": "uint8", "char": "int8", "short": "int16", "rune": "int32", "int": "int64", "long": "int64", "uint": "uint64",
	"cfloat": "complex64", "cdouble": "complex128",
}

// UnmarshalText parses the name of one of DTypes. The error for an unknown name suggests the
// nearest one, or the one that other libraries call so: float16 for fp16.
func (d *DType) UnmarshalText(name []byte) (err error) {
	*d, err = text.Named("dtype", string(name), DTypes(), dtypeSynonyms)
	return err
}

// Size returns the length of one element in bytes.
func (d DType) Size() int { return d.reduce().Size() }

// reduce returns the type's number in package reduce.
func (d DType) reduce() reduce.Type { return reduceTypes[d] }

// DTypeOf returns the DType of T, which may be a named type.
func DTypeOf[T Element]() DType {
	if kind := reflect.TypeFor[T]().Kind(); kind != reflect.Struct {
		return dtypeOfKind[kind]
	}
	var zero T
	if _, ok := any(zero).(half.Float16); ok {
		return Float16
	}
	return BFloat16
}

var dtypeOfKind = [...]DType{
	reflect.Uint8: Uint8, reflect.Int8: Int8, reflect.Uint16: Uint16, reflect.Int16: Int16,
	reflect.Uint32: Uint32, reflect.Int32: Int32, reflect.Uint64: Uint64, reflect.Int64: Int64,
	reflect.Float32: Float32, reflect.Float64: Float64,
	reflect.Complex64: Complex64, reflect.Complex128: Complex128, reflect.Bool: Bool,
	reflect.Int: word(Int32, Int64), reflect.Uint: word(Uint32, Uint64), reflect.Uintptr: word(Uint32, Uint64),
}

// word returns the type that has the size of a word.
func word(of32, of64 DType) DType {
	if bits.UintSize == 32 {
		return of32
	}
	return of64
}
