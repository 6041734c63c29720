package stress

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
	"github.com/goccl/goccl/test/calls"
)

// numbers describes the elements of messages: integers, which each type represents exactly.
type numbers[T ccl.Element] struct {
	bits int // width of the integers, from 0 on
	of   func(x int64) T
}

// types draw messages of one type each.
var types = []drawings{
	numbers[uint8]{8, func(x int64) uint8 { return uint8(x) }},
	numbers[int16]{15, func(x int64) int16 { return int16(x) }},
	numbers[int]{31, func(x int64) int { return int(x) }},
	numbers[uint64]{60, func(x int64) uint64 { return uint64(x) }},
	numbers[float32]{24, func(x int64) float32 { return float32(x) }},
	numbers[half.BFloat16]{8, func(x int64) half.BFloat16 { return half.NewBFloat16(float32(x)) }},
	numbers[bool]{1, func(x int64) bool { return x != 0 }},
	numbers[complex128]{53, func(x int64) complex128 { return complex(float64(x), 0) }},
}

// drawings draw events of one type.
type drawings interface {
	messages(d *drawing, g *group)
	gathering(d *drawing, g *group)
	exchange(d *drawing, g *group)
	fromAny(d *drawing, g *group)
	crossing(d *drawing, g *group)
}

// data returns count elements of a rank in an event.
func (n numbers[T]) data(event, rank, count int) []T {
	seed := calls.Mix(uint64(event)<<32 | uint64(rank))
	x := make([]T, count)
	for i := range x {
		x[i] = n.of(int64(calls.Mix(seed+uint64(i)) & (1<<n.bits - 1)))
	}
	return x
}

func same[T ccl.Element](what string, got, want []T) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("element %d of %d of %s is %v, want %v", i, len(want), what, got[i], want[i])
		}
	}
	return nil
}

// spoils returns a function that overwrites a buffer, and one that checks that it has not changed
// since.
func (n numbers[T]) spoils(b []T) (spoil func(), untouched func() error) {
	spoilt := n.of(101 & (1<<n.bits - 1))
	spoil = func() {
		for i := range b {
			b[i] = spoilt
		}
	}

	untouched = func() error {
		for i, got := range b {
			if got != spoilt {
				return fmt.Errorf("element %d of %d, which its owner had rewritten after the end of the call, became %v", i, len(b), got)
			}
		}
		return nil
	}
	return spoil, untouched
}
