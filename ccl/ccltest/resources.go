package ccltest

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// state makes calls in two groups concurrently.
func state(s *subject, w world, n int) error {
	return s.with(w, n, probe{}, func(one *group) error {
		return s.with(w, n, probe{}, func(two *group) error {
			errs := make(chan error, 2)
			for i, g := range []*group{one, two} {
				go func() { errs <- g.twice(i > 0) }()
			}
			first, second := <-errs, <-errs
			if first != nil {
				return first
			}
			return second
		})
	})
}

// twice makes every call twice on the same buffers, with other inputs. fromMiddle rotates
// the order of the calls.
func (g *group) twice(fromMiddle bool) error {
	jobs, err := g.supported(g.some(50, g.jobs()))
	if err != nil {
		return err
	}
	again, err := g.supported(g.some(50, g.jobs()))
	if err != nil {
		return err
	}
	for _, j := range again {
		j.salt++
	}
	return g.each(func(r *rank) error {
		for i := range jobs {
			if fromMiddle {
				i = (i + len(jobs)/2) % len(jobs)
			}
			a := r.attempt(jobs[i])
			if err := do(a, jobs[i], attempt.right); err != nil {
				return err
			}
			a.renew(again[i])
			if err := do(a, again[i], attempt.right); err != nil {
				return fmt.Errorf("again on the same buffers: %w", err)
			}
		}
		return nil
	})
}

// allocationCalls is the number of calls of all ranks while allocations are counted, and
// allocationSlack the number of allocations left to the Go runtime, which allocates when
// goroutines park and when they move to another thread.
const (
	allocationCalls = 10200
	allocationSlack = 100
)

func allocations(s *subject, w world, n int) error {
	if raceEnabled {
		return &skipped{why: "the race detector allocates; run without -race to count", rest: true}
	}
	return s.with(w, n, probe{}, func(g *group) error {
		j, err := g.sample()
		if err != nil {
			return err
		}
		const warmUp = 100
		ready, start := make(chan struct{}), make(chan struct{})
		var before, after runtime.MemStats
		done := make(chan error, 1)
		go func() {
			done <- g.each(func(r *rank) error {
				a := r.attempt(j)
				for i := range warmUp + allocationCalls/n {
					if i == warmUp {
						ready <- struct{}{}
						<-start
					}
					if err := a.call(context.Background()); err != nil {
						return err
					}
				}
				return nil
			})
		}()
		for range n {
			select {
			case <-ready:
			case err := <-done: // a rank failed, and so all ended
				return err
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&before)
		close(start)
		if err := <-done; err != nil {
			return err
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > allocationSlack {
			return fmt.Errorf("%v: %d allocations in %d calls", j, n, allocationCalls)
		}
		return nil
	})
}

// leaks opens and closes groups, some of which have failed, and counts goroutines.
func leaks(s *subject, w world, n int) error {
	before := runtime.NumGoroutine()
	for i := range 5 {
		err := s.with(w, n, probe{}, func(g *group) error {
			j, err := g.sample()
			if err != nil {
				return err
			}
			return g.each(func(r *rank) error {
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
		})
		if err != nil && i%2 != 0 {
			return err
		}
	}
	deadline := time.Now().Add(s.timeout)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			err := fmt.Errorf("%d goroutines were running before, %d are now", before, runtime.NumGoroutine())
			return &evidence{err, "all goroutines:\n" + stacks()}
		}
		runtime.Gosched()
	}
	return nil
}
