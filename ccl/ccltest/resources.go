package ccltest

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// concurrent lets two groups work side by side.
func concurrent(s *subject, w world, n int) error {
	return s.with(w, n, probe{}, func(one *group) error {
		return s.with(w, n, probe{}, func(two *group) error {
			errs := make(chan error, 2)
			for i, g := range []*group{one, two} {
				go func() {
					jobs := g.jobs()
					if i > 0 { // the same calls, in another order
						jobs = append(jobs[len(jobs)/2:], jobs[:len(jobs)/2]...)
					}
					errs <- g.run(jobs, attempt.right)
				}()
			}
			first, second := <-errs, <-errs
			if first != nil {
				return first
			}
			return second
		})
	})
}

// allocationCalls is how many calls all ranks make together while allocations are
// counted, and allocationSlack how many of those belong to the Go runtime, which
// allocates when goroutines park and when they move to another thread.
const (
	allocationCalls = 10200
	allocationSlack = 100
)

func allocations(s *subject, w world, n int) error {
	if raceEnabled {
		return &skipped{"the race detector allocates; run without -race to count"}
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

// leaks opens and closes groups, of which some have failed, and counts
// goroutines.
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
			return fmt.Errorf("%d goroutines were running before, %d are now\n%s", before, runtime.NumGoroutine(), stacks())
		}
		runtime.Gosched()
	}
	return nil
}
