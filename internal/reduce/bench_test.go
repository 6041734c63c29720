package reduce

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// sizes are the sizes of one buffer: three such buffers fit into the first-level cache,
// into the second-level cache, or into none.
var sizes = []struct {
	name  string
	bytes int
}{{"64B", 64}, {"8KiB", 8 << 10}, {"128KiB", 128 << 10}, {"32MiB", 32 << 20}}

// BenchmarkPair counts the bytes of one buffer: two are read and one is written.
func BenchmarkPair(b *testing.B) {
	for _, o := range testers {
		o.benchmarkPair(b)
	}
}

func (o oracle[T]) benchmarkPair(b *testing.B) {
	typ := o.typ
	for _, op := range opsOf(typ) {
		if op == Avg {
			continue // the same as Sum
		}
		for _, size := range sizes {
			n := size.bytes / typ.Size()
			p := pointers([]buffer[T]{digits(o, n), digits(o, n), digits(o, n)})
			for _, m := range supported {
				b.Run(fmt.Sprintf("type=%v/op=%v/bytes=%s/by=%v", typ, op, size.name, m), func(b *testing.B) {
					rate(b, size.bytes, func() { m.pair(typ, op, p[0], p[1], p[2], n) })
				})
			}
		}
	}
}

// BenchmarkMany reduces in place, and into separate buffers, where the results may be stored past the
// caches. It counts the bytes of one buffer, as an all-reduce does. It does not rewrite its buffers
// between calls, because the loops take the same time for all numbers, including infinities.
func BenchmarkMany(b *testing.B) {
	for _, o := range testers {
		o.benchmarkMany(b)
	}
}

func (o oracle[T]) benchmarkMany(b *testing.B) {
	typ := o.typ
	for _, size := range sizes {
		n := size.bytes / typ.Size()
		var buffers []buffer[T]
		for range 8 {
			buffers = append(buffers, digits(o, n))
		}
		for _, srcs := range []int{2, 3, 8} {
			p := pointers(buffers[:srcs])
			for _, op := range opsOf(typ)[:2] {
				for _, m := range supported {
					b.Run(fmt.Sprintf("type=%v/op=%v/bytes=%s/srcs=%d/by=%v", typ, op, size.name, srcs, m), func(b *testing.B) {
						rate(b, size.bytes, func() { m.many(typ, op, p, p, n, srcs, false) })
					})
				}
			}
		}
		from, to := pointers(buffers[:4]), pointers(buffers[4:])
		for _, stream := range []bool{false, true} {
			b.Run(fmt.Sprintf("type=%v/op=%v/bytes=%s/srcs=4/by=%v/apart/stream=%v", typ, opsOf(typ)[0], size.name, best, stream), func(b *testing.B) {
				rate(b, size.bytes, func() { Many(typ, opsOf(typ)[0], to, from, n, 4, stream) })
			})
		}
	}
}

// BenchmarkScan counts the bytes of one buffer, as a scan does on every rank.
func BenchmarkScan(b *testing.B) {
	for _, o := range testers {
		o.benchmarkScan(b)
	}
}

func (o oracle[T]) benchmarkScan(b *testing.B) {
	const ranks = 4
	op := opsOf(o.typ)[0]
	for _, size := range sizes {
		n := size.bytes / o.typ.Size()
		var buffers []buffer[T]
		for range ranks {
			buffers = append(buffers, digits(o, n))
		}
		p := pointers(buffers)
		for _, exclusive := range []bool{false, true} {
			for _, m := range supported {
				b.Run(fmt.Sprintf("type=%v/op=%v/bytes=%s/srcs=%d/exclusive=%v/by=%v", o.typ, op, size.name, ranks, exclusive, m), func(b *testing.B) {
					rate(b, size.bytes, func() { m.scan(o.typ, op, p, p, n, exclusive) })
				})
			}
		}
	}
}

// rate calls f, which works on buffers of this many bytes, and reports GB/s.
func rate(b *testing.B, bytes int, f func()) {
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(bytes)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
}

// digits returns n random numbers from 1 to 9.
func digits[T element](o oracle[T], n int) buffer[T] {
	r := rand.New(rand.NewPCG(11, 12))
	d := full(n, o.of(0))
	for i := range d.body() {
		d.body()[i] = o.of(1 + r.IntN(9))
	}
	return d
}
