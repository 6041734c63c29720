package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/internal/reduce"
)

// cached is a length at which both ranks' copies stay in their own caches.
const cached = 64 << 10

// Yardsticks measures calls of two goroutine ranks for about a second. It returns the results, and
// passes findings about the yardsticks to found, each as soon as it is known.
//
// It uses at most half of the memory that is available below root; see Machine.
func Yardsticks(ctx context.Context, root string, found func(Finding)) (results []measure.Result) {
	job := measure.Setup{
		Config: config.Default(),
		Budget: measure.Budget{Time: 40 * time.Millisecond, Warmup: 1, MinCalls: 3, MaxCalls: 5000},
	}
	small, err := job.Measure(ctx, allReduce(cached))
	if err != nil {
		found(ok(PartYardsticks, "goroutines", "two ranks cannot work: %v", err).with(Problem, "what the error says"))
		return nil
	}

	found(works(small))
	if y := small.Yardstick(measure.CoreToCore); y.Calls > 0 {
		found(ok(PartYardsticks, "core to core", "%s us, one way", measure.Digits(y.P50, 3)))
	} else {
		found(ok(PartYardsticks, "core to core", "not measured: needs two idle cores").with(Note, ""))
	}
	found(ok(PartYardsticks, "barrier", "%s us, of 2 ranks", measure.Digits(small.Yardstick(measure.Barrier).P50, 3)))
	found(copies("copies in cache", small))
	results = append(results, small)

	large, f := copiesInMemory(ctx, job, measure.AvailableMemory(root))
	found(f)
	return append(results, large...)
}

// copiesInMemory measures copies of vectors that the caches do not hold, or of shorter ones if
// too little memory is available; 0 is unknown.
func copiesInMemory(ctx context.Context, job measure.Setup, available int) ([]measure.Result, Finding) {
	const name = "copies in memory"
	enough := min(max(reduce.CacheBytes(), 16<<20), 64<<20) // each of two ranks copies it
	bytes := enough
	for lacks(available, allReduce(bytes).Memory()) {
		bytes /= 2
	}
	remedy := fmt.Sprintf("free more than %s of memory", Amount(2*allReduce(enough).Memory()))
	if bytes <= cached {
		return nil, ok(PartYardsticks, name, "not measured: %s of memory are available", Amount(float64(available))).with(Note, remedy)
	}

	large, err := job.Measure(ctx, allReduce(bytes))
	if err != nil {
		return nil, ok(PartYardsticks, name, "not measured: %v", err).with(Note, "")
	}
	f := copies(name, large)
	if bytes < enough {
		f.Says += fmt.Sprintf("; no longer vectors, since %s of memory are available", Amount(float64(available)))
		f = f.with(Note, remedy)
	}
	return []measure.Result{large}, f
}

// lacks reports whether need is more than half of the available memory, in bytes; 0 is unknown, and
// enough.
func lacks(available int, need float64) bool { return available > 0 && 2*need > float64(available) }

func allReduce(bytes int) measure.Case {
	return measure.Case{
		Collective: ccl.CollAllReduce.String(), DType: ccl.Float32.String(), Op: ccl.Sum.String(),
		Ranks: 2, Bytes: bytes, InPlace: true,
	}
}

// works returns a finding about the correctness of goroutine ranks' results, and about
// other load.
func works(r measure.Result) Finding {
	for _, row := range r.Rows {
		if row.Errors > 0 {
			return ok(PartYardsticks, "goroutines", "%d elements of %s are wrong (%s)", row.Errors, r.Title(), row.Entry).
				with(Problem, "this is a defect of goccl or of the machine: report it")
		}
	}

	row := r.Algorithms()[0]
	f := ok(PartYardsticks, "goroutines", "%s of %s: %s us, %.1f times a peer copy, results correct", r.Title(), Amount(float64(r.Bytes)), measure.Digits(row.P50, 3), row.XPeerCopy)
	if r.OtherLoad >= 0.5 {
		f.Says += fmt.Sprintf("; meanwhile others had %.1f of the cores", r.OtherLoad)
		return f.with(Note, "other load affects all times")
	}
	return f
}

// copies returns a finding about the speed of copies of a core's own and of another
// core's data.
func copies(name string, r measure.Result) Finding {
	return ok(PartYardsticks, name, "%s of each of 2 ranks: own %s GB/s, peer's %s GB/s per core", Amount(float64(r.Bytes)),
		measure.Digits(r.Yardstick(measure.OwnCopy).AlgBW, 3), measure.Digits(r.Yardstick(measure.PeerCopy).AlgBW, 3))
}
