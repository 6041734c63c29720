//go:build interleave

package seeds

import (
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

var (
	replayed   = flag.String("choices", "", "choices instead of those of the seed, as a failing job prints them")
	shrinkRuns = flag.Int("shrink", 200, "the first job that fails is shrunk by so many runs; 0: it is not")
)

// shrinkTime bounds how long a job is shrunk.
const shrinkTime = 20 * time.Second

// optionsOf returns how the job of a seed runs.
func optionsOf(t *testing.T, seed uint64) interleave.Options {
	choices, err := interleave.ParseChoices(*replayed)
	if err != nil {
		t.Fatal(err)
	}
	return interleave.Options{Seed: seed, Choices: choices}
}

// report fails the test because the job of a seed has ended with err. The first time it shrinks the
// job, and shows its last steps.
func report(t *testing.T, k kind, seed uint64, err error) {
	t.Helper()
	o, steps, text := optionsOf(t, seed), "", err.Error()
	if o.Choices == nil && *shrinkRuns > 0 {
		if few, ok := shrink(t, k, seed, err); ok {
			o = few
		}
		*shrinkRuns = 0
	}

	again := ""
	o.IsTraced = true
	r, failure := runAgain(t, k, seed, o)
	if failure != nil { // with what ranks have missed
		text = failure.Error()
	}
	if o.Choices != nil {
		steps = interleave.Picture(r.Trace, 80, 160)
		again = " -choices " + o.Choices.String()
	}
	t.Errorf("seed %d, %s: %s\n%sagain: make seeds ARGS='-seed %d -count 1 -kind %s%s'", seed, k.name, text, steps, seed, k.name, again)
}

// shrink looks for few choices with which the job of a seed fails in the same way.
func shrink(t *testing.T, k kind, seed uint64, err error) (interleave.Options, bool) {
	start := time.Now()
	return interleave.Shrink(optionsOf(t, seed), *shrinkRuns, func(o interleave.Options) (interleave.Result, bool) {
		if time.Since(start) > shrinkTime {
			return interleave.Result{}, false
		}
		r, failure := runAgain(t, k, seed, o)
		return r, failure != nil && findingOf(failure) == findingOf(err)
	})
}

func runAgain(t *testing.T, k kind, seed uint64, o interleave.Options) (interleave.Result, error) {
	r, err := k.run(t, seed, o)
	if r.Finding != nil {
		err = r.Finding
	}
	return r, err
}

// findingOf returns what kind of finding an error is; "": it is the auditor's.
func findingOf(err error) interleave.Kind {
	var f *interleave.Finding
	if errors.As(err, &f) {
		return f.Kind
	}
	return ""
}

// A job that fails is shrunk to the steps that it needs.
func TestShrink(t *testing.T) {
	lose := kind{"lose", func(t *testing.T, _ uint64, o interleave.Options) (interleave.Result, error) {
		var n interleave.Int64
		r := interleave.Run(t, o, func() {
			var g interleave.WaitGroup
			for range 3 {
				g.Go(func() { n.Store(n.Load() + 1) })
			}
			g.Wait()
		})
		if n.Load() < 3 {
			return r, errors.New("lost")
		}
		return r, nil
	}}
	for seed := range uint64(100) {
		if _, err := runAgain(t, lose, seed, interleave.Options{Seed: seed}); err != nil {
			few, ok := shrink(t, lose, seed, err)
			if !ok || len(few.Choices) > 5 {
				t.Errorf("seed %d: %v, %v", seed, few.Choices, ok)
			}
		}
	}
}
