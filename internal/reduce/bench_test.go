package reduce

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// sizes are those of one buffer: three of them are held by the first-level cache,
// by the second-level cache, or by none.
var sizes = []struct {
	name  string
	bytes int
}{{"64B", 64}, {"8KiB", 8 << 10}, {"128KiB", 128 << 10}, {"32MiB", 32 << 20}}

// BenchmarkPair counts the bytes of one buffer: two are read and one is written.
func BenchmarkPair(b *testing.B) {
	benchmarkPair[uint8](b, Uint8)
	benchmarkPair[int32](b, Int32)
	benchmarkPair[int64](b, Int64)
	benchmarkPair[float32](b, Float32)
	benchmarkPair[float64](b, Float64)
	benchmarkPair[float16](b, Float16)
	benchmarkPair[bfloat16](b, BFloat16)
}

func benchmarkPair[T element](b *testing.B, typ Type) {
	for _, op := range []Op{Sum, Product, Min, Max} {
		for _, size := range sizes {
			n := size.bytes / typ.Size()
			p := pointers([]buffer[T]{digits[T](n), digits[T](n), digits[T](n)})
			for _, m := range supported {
				b.Run(fmt.Sprintf("type=%v/op=%v/bytes=%s/by=%v", typ, op, size.name, m), func(b *testing.B) {
					rate(b, size.bytes, func() { m.pair(typ, op, p[0], p[1], p[2], n) })
				})
			}
		}
	}
}

// BenchmarkMany reduces in place, and apart, where the results may be stored past
// the caches. It counts the bytes of one buffer, as an all-reduce does. Its buffers are not rewritten: the
// loops take no longer for one number than for another, infinities included, and
// what a cache adds is the business of whole collectives.
func BenchmarkMany(b *testing.B) {
	benchmarkMany[uint8](b, Uint8)
	benchmarkMany[int32](b, Int32)
	benchmarkMany[int64](b, Int64)
	benchmarkMany[float32](b, Float32)
	benchmarkMany[float64](b, Float64)
	benchmarkMany[float16](b, Float16)
	benchmarkMany[bfloat16](b, BFloat16)
}

func benchmarkMany[T element](b *testing.B, typ Type) {
	for _, size := range sizes {
		n := size.bytes / typ.Size()
		var buffers []buffer[T]
		for range 8 {
			buffers = append(buffers, digits[T](n))
		}
		for _, srcs := range []int{2, 3, 8} {
			p := pointers(buffers[:srcs])
			for _, op := range []Op{Sum, Avg} {
				for _, m := range supported {
					b.Run(fmt.Sprintf("type=%v/op=%v/bytes=%s/srcs=%d/by=%v", typ, op, size.name, srcs, m), func(b *testing.B) {
						rate(b, size.bytes, func() { m.many(typ, op, p, p, n, srcs, false) })
					})
				}
			}
		}
		from, to := pointers(buffers[:4]), pointers(buffers[4:])
		for _, stream := range []bool{false, true} {
			b.Run(fmt.Sprintf("type=%v/op=sum/bytes=%s/srcs=4/by=%v/apart/stream=%v", typ, size.name, best, stream), func(b *testing.B) {
				rate(b, size.bytes, func() { Many(typ, Sum, to, from, n, 4, stream) })
			})
		}
	}
}

// rate calls f, which works on buffers of so many bytes, and reports GB/s.
func rate(b *testing.B, bytes int, f func()) {
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(bytes)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
}

// digits returns n random numbers from 1 to 9.
func digits[T element](n int) buffer[T] {
	r := rand.New(rand.NewPCG(11, 12))
	d := full(n, T(0))
	for i := range d.body() {
		d.body()[i] = of[T](1 + r.IntN(9))
	}
	return d
}
