package ddp

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// newStored makes elements of the types that files have, by the format's names.
var newStored = map[string]func(count int) elements{
	"F64": newVector[float64], "F32": newVector[float32], "F16": newVector[half.Float16], "BF16": newVector[half.BFloat16],
	"I64": newVector[int64], "I32": newVector[int32], "I16": newVector[int16], "I8": newVector[int8],
	"U64": newVector[uint64], "U32": newVector[uint32], "U16": newVector[uint16], "U8": newVector[uint8],
	"BOOL": newVector[bool], "F8_E4M3": newOpaque("F8_E4M3"), "F8_E5M2": newOpaque("F8_E5M2"), "F8_E8M0": newOpaque("F8_E8M0"),
}

// typeNames are the format's names of types that vectors have.
var typeNames = func() map[ccl.DType]string {
	all := map[ccl.DType]string{}
	for name, made := range newStored {
		if _, isOpaque := made(0).(opaque); !isOpaque {
			all[made(0).dtype()] = name
		}
	}
	return all
}()

func newVector[T Storable](count int) elements { return make(vector[T], count) }

func (v vector[T]) typeName() string { return typeNames[v.dtype()] }

// opaque are elements of one byte of a type that no vector has, such as a float of 8 bits.
type opaque struct {
	vector[uint8]
	name string
}

func newOpaque(name string) func(count int) elements {
	return func(count int) elements { return opaque{make([]uint8, count), name} }
}

func (o opaque) typeName() string       { return o.name }
func (o opaque) fresh() elements        { return opaque{make(vector[uint8], len(o.vector)), o.name} }
func (o opaque) copyFrom(from elements) { copy(o.vector, from.(opaque).vector) }
