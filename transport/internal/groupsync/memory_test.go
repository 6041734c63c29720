package groupsync

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/goccl/goccl/transport"
)

// The check for many ranks finds exactly the overlaps that the check of all pairs finds.
func TestOverlappingOfManyRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	span := func(within int) (s transport.Span) {
		if r.IntN(8) == 0 {
			return s
		}
		s.Lo = 1 + r.Uint64N(uint64(within))
		s.Hi = s.Lo + 1 + r.Uint64N(8)
		return s
	}

	found := [2]int{}
	for range 20000 {
		all := make([]memory, 1+r.IntN(20))
		within := 16 << r.IntN(10)
		for i := range all {
			all[i] = memory{writes: span(within)}
			switch r.IntN(3) {
			case 0:
				all[i].reads = all[i].writes // in place
			case 1:
				all[i].reads = span(within)
			default: // a span that all ranks read
				all[i].reads = transport.Span{Lo: 1 << 20, Hi: 1<<20 + 4}
			}
		}
		want := overlapInPairs(all)
		if got := overlapSorted(all, make([]written, 0, len(all))); got != want {
			t.Fatalf("%v: %v, want %v", all, got, want)
		}
		if ranks := overlappedRanks(all); want != (len(ranks) > 1) {
			t.Fatalf("%v: %v, but names %v", all, want, ranks)
		}

		if want {
			found[1]++
		} else {
			found[0]++
		}
	}
	if min(found[0], found[1]) < 1000 {
		t.Errorf("%d without and %d with overlaps are no test", found[0], found[1])
	}
}

// With new buffers in every call, the cost for many ranks must not grow with the square of their
// number.
func BenchmarkOverlapping(b *testing.B) {
	for _, n := range []int{2, 8, 64, 65, 256, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := &memories{known: make([]memory, n)}
			for i, at := range rand.Perm(n) {
				lo := uint64(1000*at + 1)
				m.known[i] = memory{transport.Span{Lo: lo, Hi: lo + 400}, transport.Span{Lo: lo + 500, Hi: lo + 900}}
			}

			for b.Loop() {
				if m.overlap() {
					b.Fatal("no two overlap")
				}
			}
			b.ReportAllocs()
		})
	}
}
