package ddp

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// elements are a slice of one of the types that files have.
type elements interface {
	dtype() ccl.DType
	// typeName returns the format's name of the type.
	typeName() string
	count() int
	// span returns the addresses of the first byte and of the one after the last.
	span() (first, end uintptr)
	// broadcast gives all ranks the elements of one.
	broadcast(ctx context.Context, c *ccl.Communicator, root int, opts ...ccl.CallOption) error
	// encode writes the elements, little-endian.
	encode(w io.Writer) error
	// fresh returns elements of the same type and count, in memory of their own.
	fresh() elements
	// decode reads the elements, and writes their bytes to sums.
	decode(r io.Reader, sums io.Writer) error
	// copyFrom copies elements of the same type and count.
	copyFrom(from elements)
	// eachFloat calls f for each element of a Float type, in whose place it may put another.
	eachFloat(f func(i int, x float64) (y float64, isNew bool))
}

// vector is a slice of a type.
type vector[T Storable] []T

func (v vector[T]) dtype() ccl.DType { return ccl.DTypeOf[T]() }

func (v vector[T]) count() int { return len(v) }

func (v vector[T]) span() (first, end uintptr) {
	first = reflect.ValueOf([]T(v)).Pointer()
	return first, first + uintptr(bytesOf(v))
}

func bytesOf(e elements) int { return e.count() * e.dtype().Size() }

func (v vector[T]) broadcast(ctx context.Context, c *ccl.Communicator, root int, opts ...ccl.CallOption) error {
	return ccl.Broadcast(ctx, c, []T(v), root, opts...)
}

func (v vector[T]) fresh() elements { return make(vector[T], len(v)) }

func (v vector[T]) copyFrom(from elements) { copy(v, from.(vector[T])) }

// errNoBool is the error of what no writer of bools writes, and which would not be written back.
var errNoBool = errors.New("has a byte that is neither 0 nor 1")

// piece is the number of elements that are converted at a time.
const piece = 1 << 14

func (v vector[T]) encode(w io.Writer) error {
	memory := make([]byte, 0, 8*min(piece, len(v)))
	for part := range slices.Chunk([]T(v), piece) {
		memory = memory[:0]

		switch p := any(part).(type) {
		case []half.Float16:
			for _, x := range p {
				memory = binary.LittleEndian.AppendUint16(memory, x.Bits())
			}
		case []half.BFloat16:
			for _, x := range p {
				memory = binary.LittleEndian.AppendUint16(memory, x.Bits())
			}
		default:
			memory, _ = binary.Append(memory, binary.LittleEndian, p) // it takes all others
		}

		if _, err := w.Write(memory); err != nil {
			return err
		}
	}
	return nil
}

func (v vector[T]) decode(r io.Reader, sums io.Writer) error {
	size := v.dtype().Size()
	memory := make([]byte, size*min(piece, len(v)))
	for part := range slices.Chunk([]T(v), piece) {
		b := memory[:size*len(part)]
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		_, _ = sums.Write(b) // hashes take everything

		switch p := any(part).(type) {
		case []bool:
			for i := range p {
				if b[i] > 1 {
					return errNoBool
				}
				p[i] = b[i] == 1
			}

		case []half.Float16:
			for i := range p {
				p[i] = half.Float16FromBits(binary.LittleEndian.Uint16(b[2*i:]))
			}
		case []half.BFloat16:
			for i := range p {
				p[i] = half.BFloat16FromBits(binary.LittleEndian.Uint16(b[2*i:]))
			}
		default:
			_, _ = binary.Decode(b, binary.LittleEndian, p) // it takes all others
		}
	}
	return nil
}
