package stress

import (
	"fmt"
	"math/rand/v2"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// numbers describes an element type: its range of integers, and division. Programs compute
// only with these integers.
type numbers[T ccl.Element] struct {
	bits int // width of the integers, from 0 on, that the type represents exactly
	of   func(x int64) T
	over func(x int64, n int) T // x by n
}

// types draw calls and messages of one type each.
var types = []drawings{
	integers[uint8](8), integers[int8](7),
	integers[uint16](16), integers[int16](15),
	integers[uint32](32), integers[int32](31),
	integers[uint64](60), integers[int64](60), integers[int](31),
	floats(24, func(x float64) float32 { return float32(x) }),
	floats(53, func(x float64) float64 { return x }),
	floats(11, func(x float64) half.Float16 { return half.NewFloat16(float32(x)) }),
	floats(8, func(x float64) half.BFloat16 { return half.NewBFloat16(float32(x)) }),
	floats(24, func(x float64) complex64 { return complex(float32(x), 0) }),
	floats(53, func(x float64) complex128 { return complex(x, 0) }),
}

// drawings draw events of one type.
type drawings interface {
	collective(d *drawing, g *group, k kind)
	messages(d *drawing, g *group)
	gathering(d *drawing, g *group)
	exchange(d *drawing, g *group)
}

func integers[T interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | uint16 | ~uint32 | ~uint64
}](bits int) *numbers[T] {
	return &numbers[T]{
		bits: bits,
		of:   func(x int64) T { return T(x) },
		over: func(x int64, n int) T { return T(x / int64(n)) },
	}
}

func floats[T ccl.Element](bits int, nearest func(float64) T) *numbers[T] {
	return &numbers[T]{
		bits: bits,
		of:   func(x int64) T { return nearest(float64(x)) },
		over: func(x int64, n int) T { return nearest(float64(x) / float64(n)) },
	}
}

// hash returns a random number for element i of a rank in an event.
func hash(event, rank, i int) int64 {
	return int64(rand.NewPCG(uint64(event)<<32|uint64(rank), uint64(i)).Uint64() >> 1)
}

// data returns count elements of a rank in an event, with at most the given number of bits.
func (n *numbers[T]) data(event, rank, count, bits int) []T {
	x := make([]T, count)
	for i := range x {
		x[i] = n.of(hash(event, rank, i) & (1<<bits - 1))
	}
	return x
}

// same returns an error if the slices differ.
func same[T ccl.Element](what string, got, want []T) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("element %d of %d of %s is %v, want %v", i, len(want), what, got[i], want[i])
		}
	}
	return nil
}

// spoils returns a function that overwrites buffers, and one that checks that they have not
// changed since.
func (n *numbers[T]) spoils(buffers ...[]T) (spoil func(), kept func() error) {
	spoilt := n.of(101 & (1<<n.bits - 1))
	spoil = func() {
		for _, b := range buffers {
			for i := range b {
				b[i] = spoilt
			}
		}
	}
	kept = func() error {
		for _, b := range buffers {
			for i := range b {
				if b[i] != spoilt {
					return fmt.Errorf("element %d of %d, which its owner had rewritten after the end of the call, became %v", i, len(b), b[i])
				}
			}
		}
		return nil
	}
	return spoil, kept
}
