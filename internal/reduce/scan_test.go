package reduce

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// scanCase is one call of Scan: where[k] is the kind of destination k.
type scanCase struct {
	op        Op
	sources   int
	where     []destination
	n         int
	exclusive bool
}

type destination int

const (
	apart destination = iota
	inPlace
	nowhere // nil
)

func TestScan(t *testing.T) { forEachType(t, tester.testScan) }

func (o oracle[T]) testScan(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(23, 24))
		tile := tileBytes / o.typ.Size() // of halves, some of halfTile
		for _, op := range opsOf(o.typ) {
			if op == Avg {
				continue
			}
			for _, exclusive := range []bool{false, true} {
				for sources := 1; sources <= 9; sources++ {
					for _, where := range places(r, sources) {
						for _, n := range []int{r.IntN(10), 16 + r.IntN(512/o.typ.Size())} {
							checkScan(t, m, o, r, scanCase{op, sources, where, n, exclusive})
						}
					}
				}
				for i, where := range places(r, 3) {
					checkScan(t, m, o, r, scanCase{op, 3, where, tile - 1 + i%3, exclusive})
				}
				checkScan(t, m, o, r, scanCase{op, 3, places(r, 3)[1], 2*tile + 5, exclusive})
			}
		}
	})
}

// places returns combinations of kinds of destinations.
func places(r *rand.Rand, sources int) [][]destination {
	mixed := make([]destination, sources)
	for k := range mixed {
		mixed[k] = []destination{apart, inPlace, nowhere}[r.IntN(3)]
	}
	last := append(slices.Repeat([]destination{nowhere}, sources-1), inPlace)
	return [][]destination{
		slices.Repeat([]destination{apart}, sources),
		slices.Repeat([]destination{inPlace}, sources),
		slices.Repeat([]destination{nowhere}, sources),
		mixed,
		mixed[:r.IntN(sources)],
		last,
	}
}

// checkScan makes the call and compares every buffer, including its guards, with a reduction of the
// first sources, one element at a time.
func checkScan[T element](t *testing.T, m implementation, o oracle[T], r *rand.Rand, c scanCase) {
	t.Helper()
	var srcs, dsts, wants []buffer[T]
	for range c.sources {
		srcs = append(srcs, newBuffer(o, r, c.n, r.IntN(64)))
	}
	to := pointers(srcs)[:len(c.where)]
	for k, where := range c.where {
		dsts = append(dsts, srcs[k])
		switch where {
		case apart:
			dsts[k] = newBuffer(o, r, c.n, r.IntN(64))
			to[k] = dsts[k].at()
		case nowhere:
			to[k] = nil
		}
		wants = append(wants, dsts[k].clone())
		reduced := k + 1
		if c.exclusive {
			reduced = k
		}
		if where == nowhere || reduced == 0 {
			continue
		}
		all := make([]T, reduced)
		for i := range wants[k].body() {
			for j := range all {
				all[j] = srcs[j].body()[i]
			}
			wants[k].body()[i] = o.reduce(c.op, all, 1)
		}
	}
	var wantSrcs []buffer[T]
	for k, src := range srcs {
		wantSrcs = append(wantSrcs, src.clone())
		if k < len(c.where) && c.where[k] == inPlace {
			wantSrcs[k] = wants[k]
		}
	}

	m.scan(o.typ, c.op, to, pointers(srcs), c.n, c.exclusive)
	for k := range dsts {
		dsts[k].require(t, wants[k], "%v %+v, destination %d:", o.typ, c, k)
	}
	for k := range srcs {
		srcs[k].require(t, wantSrcs[k], "%v %+v, source %d:", o.typ, c, k)
	}
}

// Results have the bits that Many gives for the same sources. For halves they are more exact than a chain
// of stored results.
func TestScanOfHalvesIsRoundedOnce(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		const n = 300
		var srcs, dsts []buffer[float16]
		for _, x := range []float64{2048, 1, 1, -2048} { // 2049 is no float16
			srcs = append(srcs, full(n, binary16.nearest(x)))
			dsts = append(dsts, full(n, binary16.nearest(0)))
		}
		m.scan(Float16, Sum, pointers(dsts), pointers(srcs), n, false)
		for k, want := range []float64{2048, 2048, 2050, 2} {
			for _, got := range dsts[k].body() {
				if got != binary16.nearest(want) {
					t.Fatalf("result %d is %v, want %v", k, binary16.value(got), want)
				}
			}
		}
	})
}
