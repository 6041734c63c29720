//go:build interleave

package interleave

import "math/bits"

// random is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014). It is the same in all versions of Go, and not instrumented for the race detector.
type random uint64

//go:norace
func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	x := uint64(*r)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// draw draws a number below n.
//
//go:norace
func (r *random) draw(n int) int {
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int(hi)
}

// isOnce reports true in one of n cases.
//
//go:norace
func (r *random) isOnce(n int) bool { return n > 0 && r.draw(n) == 0 }
