//go:build interleave

package seeds

import (
	"flag"
	"fmt"
	"testing"
	"time"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/internal/interleave"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed")
	jobs      = flag.Int("count", 400, "so many seeds")
	onlyKind  = flag.String("kind", "", "only jobs of this kind")
)

// A kind is a kind of job. run runs the job of a seed under o, and returns what is wrong with how it
// has ended. What interleave.Run finds is in the result.
type kind struct {
	name string
	run  func(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error)
}

// kinds are drawn in turn, by the seed.
var kinds = []kind{{"departures", runDepartures}}

// kindOf returns the kind of a seed's job.
func kindOf(seed uint64) kind {
	if *onlyKind == "" {
		return kinds[seed%uint64(len(kinds))]
	}
	for _, k := range kinds {
		if k.name == *onlyKind {
			return k
		}
	}
	panic("no kind " + *onlyKind)
}

// Every job ends as its auditor says.
func TestJobs(t *testing.T) {
	var steps, hash uint64
	start := time.Now()
	for i := range uint64(*jobs) {
		seed := *firstSeed + i
		k := kindOf(seed)
		r, err := k.run(t, seed, interleave.Options{Seed: seed})
		if r.Finding != nil {
			err = r.Finding
		}
		if err != nil {
			t.Errorf("seed %d, %s: %v\nagain: make seeds ARGS='-seed %d -count 1 -kind %s'", seed, k.name, err, seed, k.name)
		}
		steps += uint64(r.Steps)
		hash = hash*1099511628211 ^ r.Hash
	}

	took := time.Since(start)
	fmt.Printf("%d jobs from seed %d: %d steps a job, %d ns a step, %.0f jobs/s, hash %016x\n", *jobs, *firstSeed,
		steps/uint64(*jobs), took.Nanoseconds()/int64(max(steps, 1)), float64(*jobs)/took.Seconds(), hash)
}
