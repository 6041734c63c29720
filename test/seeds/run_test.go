//go:build interleave

package seeds

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/calls"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed")
	jobs      = flag.Int("count", 400, "so many seeds")
	limit     = flag.Duration("for", 0, "as many seeds as this takes, instead of -count")
	onlyKind  = flag.String("kind", "", "only jobs of this kind")
)

// A kind is a kind of job. run runs the job of a seed under o, and returns what is wrong with how it
// has ended. What interleave.Run finds is in the result.
type kind struct {
	name string
	run  func(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error)
}

// kinds are drawn by the seed.
var kinds = []kind{
	{"departures", runDepartures},
	{"programs", runProgram},
	{"spawn", runSpawn},
	{"operators", runOperators},
	{"training", runTraining},
	{"processes", runProcesses},
	{"bugs", runBug},
	{"faults", runFaults},
	{"orders", runOrders},
	{"packets", runPackets},
}

// asked are kinds that no seed draws, beside the corners.
var asked = []kind{{"moments", runMoments}, {"corners", runCorners}, {"options", runOptions}}

// kindOf returns the kind of a seed's job.
func kindOf(seed uint64) kind {
	if *onlyKind == "" {
		return kinds[calls.Mix(seed)%uint64(len(kinds))]
	}
	for _, k := range slices.Concat(asked, corners, kinds) {
		if k.name == *onlyKind {
			return k
		}
	}
	panic("no kind " + *onlyKind)
}

// total is what several jobs have taken.
type total struct {
	jobs  int
	steps uint64
	hash  uint64 // over all choices
}

// add runs the job of a seed.
func (all *total) add(t *testing.T, k kind, seed uint64) (hash uint64) {
	r, err := k.run(t, seed, optionsOf(t, seed))
	if r.Finding != nil {
		err = r.Finding
	}
	if err != nil {
		report(t, k, seed, err)
	}
	all.jobs++
	all.steps += uint64(r.Steps)
	all.hash = chain(all.hash, r.Hash)
	return r.Hash
}

// chain adds the hash of a run to that of those before.
func chain(hash, next uint64) uint64 { return hash*1099511628211 ^ next }

// isNext reports whether there is a job i.
func isNext(i uint64, start time.Time) bool {
	if *limit > 0 {
		return time.Since(start) < *limit
	}
	return i < uint64(*jobs)
}

// Every job ends as its auditor says.
func TestJobs(t *testing.T) {
	var all total
	start := time.Now()
	for i := uint64(0); isNext(i, start); i++ {
		seed := *firstSeed + i
		all.add(t, kindOf(seed), seed)
	}
	took := time.Since(start)
	fmt.Printf("%d jobs from seed %d: %d steps a job, %d ns a step, %.0f jobs/s, hash %016x\n", all.jobs, *firstSeed,
		all.steps/uint64(max(all.jobs, 1)), took.Nanoseconds()/int64(max(all.steps, 1)), float64(all.jobs)/took.Seconds(), all.hash)
}
