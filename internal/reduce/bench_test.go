package reduce

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

var sizes = []struct {
	name  string
	bytes int
}{{"64B", 64}, {"16KiB", 16 << 10}, {"1MiB", 1 << 20}}

// BenchmarkPair counts the bytes of one buffer: two are read and one is written.
func BenchmarkPair(b *testing.B) {
	benchmarkPair[uint8](b, Uint8)
	benchmarkPair[int32](b, Int32)
	benchmarkPair[int64](b, Int64)
	benchmarkPair[float32](b, Float32)
	benchmarkPair[float64](b, Float64)
}

func benchmarkPair[T number](b *testing.B, typ Type) {
	for _, op := range []Op{Sum, Product, Min, Max} {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("type=%v/op=%v/bytes=%s", typ, op, size.name), func(b *testing.B) {
				n := size.bytes / typ.Size()
				p := pointers([]buffer[T]{digits[T](n), digits[T](n), digits[T](n)})
				fold := Pair(typ, op)
				b.SetBytes(int64(size.bytes))
				for b.Loop() {
					fold(p[0], p[1], p[2], n)
				}
			})
		}
	}
}

// BenchmarkMany reduces in place and counts the bytes of one buffer, as an
// all-reduce does. Its buffers are not rewritten: the loops take no longer for
// one number than for another, infinities included, and what a cache adds is the
// business of whole collectives.
func BenchmarkMany(b *testing.B) {
	benchmarkMany[uint8](b, Uint8)
	benchmarkMany[int32](b, Int32)
	benchmarkMany[int64](b, Int64)
	benchmarkMany[float32](b, Float32)
	benchmarkMany[float64](b, Float64)
}

func benchmarkMany[T number](b *testing.B, typ Type) {
	for _, op := range []Op{Sum, Avg} {
		for _, size := range sizes {
			for _, srcs := range []int{2, 3, 8} {
				b.Run(fmt.Sprintf("type=%v/op=%v/bytes=%s/srcs=%d", typ, op, size.name, srcs), func(b *testing.B) {
					n := size.bytes / typ.Size()
					var buffers []buffer[T]
					for range srcs {
						buffers = append(buffers, digits[T](n))
					}
					p := pointers(buffers)
					b.SetBytes(int64(size.bytes))
					for b.Loop() {
						Many(typ, op, p, p, n, srcs)
					}
				})
			}
		}
	}
}

// digits returns n random numbers from 1 to 9.
func digits[T number](n int) buffer[T] {
	r := rand.New(rand.NewPCG(11, 12))
	d := full(n, T(0))
	for i := range d.body() {
		d.body()[i] = T(1 + r.IntN(9))
	}
	return d
}
