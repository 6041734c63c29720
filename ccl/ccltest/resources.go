package ccltest

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/goccl/goccl/test/calls"
)

// state makes calls in two groups concurrently.
func state(s *subject, w medium, n int) error {
	return s.with(w, n, probe{}, func(first *group) error {
		return s.with(w, n, probe{}, func(second *group) error {
			errs := make(chan error, 2)
			for i, g := range []*group{first, second} {
				go func() { errs <- g.twice(i > 0) }()
			}
			return cmp.Or(<-errs, <-errs)
		})
	})
}

// twice makes every call twice on the same buffers, with other inputs. fromMiddle rotates
// the order of the calls.
func (g *group) twice(fromMiddle bool) error {
	jobs, err := g.supported(g.pick(50, g.jobs()))
	if err != nil {
		return err
	}
	again, err := g.supported(g.pick(50, g.jobs()))
	if err != nil {
		return err
	}

	for _, j := range again {
		j.Salt++
	}

	return g.each(func(r *rank) error {
		for i := range jobs {
			if fromMiddle {
				i = (i + len(jobs)/2) % len(jobs)
			}
			a := r.attempt(jobs[i])
			if err := do(a, jobs[i], attempt.Right); err != nil {
				return err
			}

			a.Renew(again[i])
			if err := do(a, again[i], attempt.Right); err != nil {
				return fmt.Errorf("again on the same buffers: %w", err)
			}
		}
		return nil
	})
}

// allocationSlack is the number of allocations left to the Go runtime, which allocates when
// goroutines park and when they move to another thread.
const allocationSlack = 100

// allocationCalls returns the number of calls that each of n ranks makes while allocations are
// counted: on many ranks, where calls are slow, enough to see that one of them allocates. With
// -short it is enough to see an allocation in every tenth call of a rank.
func (s *subject) allocationCalls(n int) int {
	calls := 10000
	if s.short {
		calls = 2000
	}
	return max(calls/(n*n/2), 3*allocationSlack)
}

func allocations(s *subject, w medium, n int) error {
	if raceEnabled {
		return &skipped{why: "the race detector allocates; run without -race to count", rest: true}
	}

	if w.name == poll.name && n > 2 {
		return &skipped{why: "many ranks that poll keep each other from running; the other media have as many"}
	}

	return s.with(w, n, probe{}, func(g *group) error {
		j, err := g.sample(few)
		if err != nil {
			return err
		}
		attempts := make([]attempt, n)
		for i, r := range g.ranks {
			attempts[i] = r.attempt(j)
		}

		calls := func(times int) error {
			return g.each(func(r *rank) error {
				for range times {
					if err := attempts[r.me].call(context.Background()); err != nil {
						return err
					}
				}
				return nil
			})
		}

		if err := calls(100); err != nil {
			return err
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		counted := s.allocationCalls(n)
		if err := calls(counted); err != nil {
			return err
		}

		runtime.ReadMemStats(&after)
		if made := after.Mallocs - before.Mallocs; made > allocationSlack {
			return fmt.Errorf("%v: %d allocations in %d calls of each of %d ranks", j, made, counted, n)
		}
		return nil
	})
}

// leaks opens and closes groups, some of which have failed, and counts goroutines.
func leaks(s *subject, w medium, n int) error {
	before, running := runtime.NumGoroutine(), stacks()

	for i := range 5 {
		err := s.sampled(w, n, probe{}, func(r *rank, j *calls.Call) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if err := r.attempt(j).call(ctx); err != nil {
				return err
			}
			if i%2 == 0 {
				r.comm.Abort(errGaveUp)
			}
			return nil
		})

		if err != nil && i%2 != 0 {
			return err
		}
	}
	deadline := time.Now().Add(s.timeout)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			err := fmt.Errorf("%d goroutines were running before, %d are now", before, runtime.NumGoroutine())
			return withEvidence(err, newStacks(running), nil)
		}
		runtime.Gosched()
	}

	return nil
}
