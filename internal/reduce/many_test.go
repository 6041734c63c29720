package reduce

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// fresh marks a destination that is not one of the sources.
const fresh = -1

// manyCase is one call of Many: destination k is source alias[k], or a separate buffer if alias[k] is
// fresh.
type manyCase struct {
	op      Op
	sources int
	alias   []int
	n       int
	ranks   int
	stream  bool // store past the caches; the fresh destinations then have the same alignment, as Many requires
}

func TestMany(t *testing.T) {
	forEachType(t, tester.testMany)
}

func (o oracle[T]) testMany(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(7, 8))
		all := opsOf(o.typ)
		tile := tileBytes / o.typ.Size()
		if o.typ.half() {
			tile = halfTile
		}
		for sources := 1; sources <= 9; sources++ {
			for i, alias := range aliases(r, sources) {
				c := manyCase{sources: sources, alias: alias}
				for _, c.op = range all {
					for _, c.n = range []int{r.IntN(10), 16 + r.IntN(512/o.typ.Size())} {
						c.ranks, c.stream = 1+r.IntN(300), r.IntN(3) == 0
						checkMany(t, m, o, r, c)
					}
				}
				if sources > 4 {
					continue
				}
				// For lengths around a tile's, each alias gets one operation and one length.
				c.op, c.stream = all[i%len(all)], i%2 == 0
				c.n, c.ranks = tile-1+i%3, sources
				checkMany(t, m, o, r, c)
				if sources <= 3 {
					c.n = 2*tile + 5
					checkMany(t, m, o, r, c)
				}
			}
		}
	})
}

// Every length, with ordinary stores and with stores past the caches.
func TestManyLengths(t *testing.T) {
	forEachType(t, tester.testLengths)
}

func (o oracle[T]) testLengths(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(19, 20))
		for n := range o.lengths() {
			for _, op := range opsOf(o.typ) {
				checkMany(t, m, o, r, manyCase{op, 3, []int{1, fresh}, n, 1 + r.IntN(9), false})
				checkMany(t, m, o, r, manyCase{op, 2, []int{fresh, fresh}, n, 1 + r.IntN(9), true})
			}
		}
		// Too long for one call of an assembly function.
		n, ops := 100<<10/o.typ.Size()+5, opsOf(o.typ)
		checkMany(t, m, o, r, manyCase{ops[1], 3, []int{fresh, 2}, n, 3, false})
		checkMany(t, m, o, r, manyCase{ops[2], 2, []int{fresh, fresh}, n, 1, true})
	})
}

// aliases returns values for manyCase.alias: the ways in which destinations can be sources.
func aliases(r *rand.Rand, sources int) [][]int {
	var disjoint, inPlace, mixed, shifted []int
	for k := range sources {
		disjoint = append(disjoint, fresh)
		inPlace = append(inPlace, k)
		mixed = append(mixed, []int{k, fresh}[r.IntN(2)])
		shifted = append(shifted, (k+1)%sources)
	}
	ways := [][]int{
		nil,                              // nothing to store
		{fresh},                          // a reduction to one rank
		disjoint,                         // an all-reduce, no rank in place
		inPlace,                          // an all-reduce, all ranks in place
		mixed,                            // an all-reduce, some ranks in place
		shifted,                          // every destination another rank's source
		append([]int{fresh}, inPlace...), // more destinations than sources
	}
	for k := range sources {
		indices := slices.Clone(disjoint)
		indices[k] = k
		ways = append(ways, indices)  // one rank in place
		ways = append(ways, []int{k}) // a reduction to one rank, in place
	}
	return ways
}

// checkMany makes the call and compares every buffer, including its guards, with a
// reduction in plain Go, one element at a time.
func checkMany[T element](t *testing.T, m implementation, o oracle[T], r *rand.Rand, c manyCase) {
	t.Helper()
	var srcs, dsts []buffer[T]
	for range c.sources {
		srcs = append(srcs, newBuffer(o, r, c.n, r.IntN(64)))
	}
	common := r.IntN(64)
	for _, source := range c.alias {
		if source == fresh {
			offset := r.IntN(64)
			if c.stream {
				offset = common
			}
			dsts = append(dsts, newBuffer(o, r, c.n, offset))
		} else {
			dsts = append(dsts, srcs[source])
		}
	}
	checkReduction(t, m, o, c, dsts, srcs)
}

func checkReduction[T element](t *testing.T, m implementation, o oracle[T], c manyCase, dsts, srcs []buffer[T]) {
	t.Helper()
	reduced := slices.Clone(srcs[0].body())
	all := make([]T, len(srcs))
	for i := range reduced {
		for k, src := range srcs {
			all[k] = src.body()[i]
		}
		reduced[i] = o.reduce(c.op, all, c.ranks)
	}
	var wantDsts, wantSrcs []buffer[T]
	for _, dst := range dsts {
		want := dst.clone()
		copy(want.body(), reduced)
		wantDsts = append(wantDsts, want)
	}
	for k, src := range srcs {
		want := src.clone()
		if slices.Contains(c.alias, k) {
			copy(want.body(), reduced)
		}
		wantSrcs = append(wantSrcs, want)
	}

	m.many(o.typ, c.op, pointers(dsts), pointers(srcs), c.n, c.ranks, c.stream)
	for k := range dsts {
		dsts[k].require(t, wantDsts[k], "%v %+v, destination %d:", o.typ, c, k)
	}
	for k := range srcs {
		srcs[k].require(t, wantSrcs[k], "%v %+v, source %d:", o.typ, c, k)
	}
}

func TestManyWithoutSources(t *testing.T) {
	dst := full(20, int32(7))
	Many(Int32, Sum, pointers([]buffer[int32]{dst}), nil, 20, 1, false)
	dst.require(t, full(20, int32(7)), "no sources:")
}

// The reduction starts from the first source and goes from left to right.
func TestManyOrder(t *testing.T) {
	negative := math.Copysign(0, -1)
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for _, c := range []struct {
			srcs []float64
			op   Op
			want float64
		}{
			{[]float64{negative, negative, negative}, Sum, negative},
			{[]float64{negative}, Sum, negative},
			{[]float64{1e16, 1, -1e16}, Sum, 0},
			{[]float64{1e16, -1e16, 1}, Sum, 1},
			{[]float64{1, 1e16, -1e16}, Sum, 0},
			{[]float64{1e200, 1e200, 1e-200}, Product, math.Inf(1)},
			{[]float64{1e-200, 1e200, 1e200}, Product, 1e200},
			{[]float64{5, 4, math.NaN(), 3, 2}, Min, math.NaN()},
			{[]float64{0, negative, 0}, Min, negative},
		} {
			const n = 91 // blocks, vectors and a tail
			var srcs []buffer[float64]
			for _, v := range c.srcs {
				srcs = append(srcs, full(n, v))
			}
			m.many(Float64, c.op, pointers(srcs), pointers(srcs), n, 1, false)
			for k := range srcs {
				for _, got := range srcs[k].body() {
					if !same(got, c.want) {
						t.Fatalf("%v of %v is %v, want %v", c.op, c.srcs, got, c.want)
					}
				}
			}
		}
	})
}

// Avg divides by the number of ranks, not by the number of sources or elements.
func TestManyAverage(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		average(t, m, Uint8, []uint8{200, 100}, 2, 22) // (300 - 256) / 2
		average(t, m, Uint8, []uint8{200, 7}, 256, 0)
		average(t, m, Int32, []int32{-4, -3}, 2, -3) // toward zero
		average(t, m, Int32, []int32{math.MaxInt32, 1}, 2, math.MinInt32/2)
		average(t, m, Int64, []int64{1, 2, 4}, 4, 1)
		average(t, m, Int64, []int64{math.MaxInt64, math.MaxInt64}, 2, -1)
		average(t, m, Int8, []int8{100, 100}, 3, -18) // -56 / 3
		average(t, m, Int16, []int16{-4, -3}, 2, -3)
		average(t, m, Uint16, []uint16{60000, 60000}, 7, 7780) // 54464 / 7
		average(t, m, Uint32, []uint32{1 << 31, 1 << 30}, 3, 1<<30)
		average(t, m, Uint64, []uint64{1 << 63, 1 << 62}, 3, 1<<62)
		average(t, m, Complex64, []complex64{1 + 2i, 2 + 7i}, 3, 1+3i)
		average(t, m, Complex128, []complex128{1 + 2i, 2 + 7i}, 4, 0.75+2.25i)
		average(t, m, Float32, []float32{1, 2}, 3, 1)
		average(t, m, Float32, []float32{0.1}, 3, float32(0.1)/3)
		average(t, m, Float64, []float64{1, 2, 4}, 7, 1)
		average(t, m, Float64, []float64{5}, 4, 1.25)
		average(t, m, Float16, []float16{0x3c00, 0x4000}, 3, 0x3c00)           // 1, 2
		average(t, m, Float16, []float16{0x2e66}, 3, 0x2844)                   // 0.0999756
		average(t, m, BFloat16, []bfloat16{0x3f80, 0x4000, 0x4080}, 7, 0x3f80) // 1, 2, 4
		average(t, m, BFloat16, []bfloat16{0x40a0}, 4, 0x3fa0)                 // 5
	})
}

func average[T element](t *testing.T, m implementation, typ Type, values []T, ranks int, want T) {
	t.Helper()
	const n = 301
	var srcs []buffer[T]
	for _, v := range values {
		srcs = append(srcs, full(n, v))
	}
	dst := full(n, values[0])
	m.many(typ, Avg, pointers([]buffer[T]{dst}), pointers(srcs), n, ranks, false)
	for _, got := range dst.body() {
		if got != want {
			t.Fatalf("%v: average of %v over %d ranks is %v, want %v", typ, values, ranks, got, want)
		}
	}
}

// Many, the loops over two operands, scans and divisions do not allocate.
func TestNothingIsAllocated(t *testing.T) {
	const n = 3001
	srcs := []buffer[float32]{full(n, float32(1)), full(n, float32(1)), full(n, float32(1))}
	from := pointers(srcs)
	apart := pointers([]buffer[float32]{full(n, float32(1)), full(n, float32(1)), full(n, float32(1))})
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for _, typ := range []Type{Float32, Float16, BFloat16} {
			for _, to := range [][]buffer[float32]{srcs, srcs[2:]} {
				dsts := pointers(to)
				allocs := testing.AllocsPerRun(100, func() { m.many(typ, Max, dsts, from, n, 1, false) })
				if allocs != 0 {
					t.Errorf("%v, %d destinations: %v allocations per call", typ, len(to), allocs)
				}
			}
			allocs := testing.AllocsPerRun(100, func() {
				m.pair(typ, Sum, from[0], from[1], from[2], n)
				m.divide(typ, from[0], n, 3)
			})
			if allocs != 0 {
				t.Errorf("%v, two operands and a division: %v allocations per call", typ, allocs)
			}
			allocs = testing.AllocsPerRun(100, func() {
				m.scan(typ, Max, apart, from, n, false)
				m.scan(typ, Max, from, from, n, true)
				Scale(typ, from[0], from[0], n, 0.5)
			})
			if allocs != 0 {
				t.Errorf("%v, two scans and a factor: %v allocations per call", typ, allocs)
			}
		}
	})
}

// Several ranks may reduce different blocks of the same buffers at the same time. The
// destination is the last source, so Many needs a tile of temporary memory.
func TestManyConcurrently(t *testing.T) {
	const ranks, each = 4, 2500
	srcs := make([]buffer[int32], 3)
	for k := range srcs {
		srcs[k] = full(ranks*each, int32(k+1))
	}
	var running sync.WaitGroup
	for rank := range ranks {
		running.Go(func() {
			var block []buffer[int32]
			for _, src := range srcs {
				block = append(block, buffer[int32]{src.whole[rank*each : rank*each+each+2*guards]})
			}
			Many(Int32, Sum, pointers(block[2:]), pointers(block), each, 1, false)
		})
	}
	running.Wait()
	want := full(ranks*each, int32(6))
	copy(want.whole[:guards], srcs[2].whole)
	copy(want.whole[guards+ranks*each:], srcs[2].whole[guards+ranks*each:])
	srcs[2].require(t, want, "concurrent reductions:")
}

// FuzzMany lets the fuzzer choose the type, operation, lengths and number of ranks of a
// call, which destinations are which sources, and the bits of the elements.
func FuzzMany(f *testing.F) {
	f.Add(uint8(0), uint8(0), uint8(2), uint16(40), uint16(2), false, []byte{0, 1}, []byte{1, 2, 3})
	f.Add(uint8(3), uint8(1), uint8(4), uint16(1025), uint16(3), true, []byte{2}, []byte{0, 0, 0xc0, 0x7f, 0, 0, 0, 0x80})
	f.Add(uint8(4), uint8(3), uint8(9), uint16(513), uint16(1), false, []byte{8, 7, 200}, []byte{0xff, 0xf8})
	f.Add(uint8(2), uint8(1), uint8(2), uint16(200), uint16(6), true, []byte{9, 9}, []byte{0xff, 0x80, 0})
	f.Add(uint8(5), uint8(0), uint8(5), uint16(777), uint16(2), false, []byte{1}, []byte{0x7b, 0xff, 0x64, 0x01, 0x80})
	f.Add(uint8(6), uint8(1), uint8(3), uint16(260), uint16(5), true, []byte{9, 2}, []byte{0x7f, 0x81, 0x00, 0x01, 0xff, 0x7f})
	f.Add(uint8(12), uint8(2), uint8(3), uint16(700), uint16(5), false, []byte{2, 0}, []byte{0xff, 0x7f, 0x81})
	f.Add(uint8(11), uint8(7), uint8(3), uint16(300), uint16(5), false, []byte{1}, []byte{0xff, 0x7f, 0x81})
	f.Fuzz(func(t *testing.T, typ, op, sources uint8, n, ranks uint16, stream bool, alias, data []byte) {
		c := manyCase{
			sources: 1 + int(sources)%9,
			n:       int(n) % 9000,
			ranks:   1 + int(ranks),
			stream:  stream,
		}
		for _, source := range alias[:min(len(alias), 12)] {
			if k := int(source); k < c.sources && !slices.Contains(c.alias, k) {
				c.alias = append(c.alias, k)
			} else {
				c.alias = append(c.alias, fresh)
			}
		}
		number := int(typ) % len(types)
		all := opsOf(Type(number))
		c.op = all[int(op)%len(all)]
		for _, m := range supported {
			testers[number].fuzzMany(t, m, c, data)
		}
	})
}

// fuzzMany takes the elements from data, and starts again at its beginning when it ends.
func (o oracle[T]) fuzzMany(t *testing.T, m implementation, c manyCase, data []byte) {
	next := 0
	o.special = make([]T, 1)
	o.any = func(*rand.Rand) T {
		raw := make([]byte, o.typ.Size())
		for i := range min(len(raw), len(data)) {
			raw[i] = data[next%len(data)]
			next++
		}
		return fromBytes[T](raw)
	}
	checkMany(t, m, o, rand.New(rand.NewPCG(9, 10)), c)
}
