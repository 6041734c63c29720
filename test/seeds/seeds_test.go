//go:build interleave

package seeds

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/transport/local"
)

var (
	firstSeed = flag.Uint64("seed", 0, "the first seed")
	count     = flag.Int("count-seeds", 50, "so many seeds")
)

func TestX(t *testing.T) {
	start := time.Now()
	steps := 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*count); seed++ {
		n := 2 + int(seed%3)
		p := stress.NewDepartures(seed, stress.Options{Ranks: n, Events: 20, Longest: 100, Algorithms: []string{"direct", "ring"}}, stress.Close, stress.Close, stress.Abort)
		accounts := make([]*stress.Account, n)
		interleave.SetProcessors([]int{1, 8}[seed/3%2])
		var err error
		r := interleave.Run(t, interleave.Options{Seed: seed}, func() {
			eps := local.New(n)
			errs := make([]error, n)
			var g interleave.WaitGroup
			for i, ep := range eps {
				g.Go(func() {
					interleave.SetLabel("rank " + string(rune('0'+i)))
					c, err := ccl.New(context.Background(), ep)
					if err != nil {
						errs[i] = err
						return
					}
					accounts[i], errs[i] = p.Run(context.Background(), c, stress.Exits{})
				})
			}
			g.Wait()
			for _, a := range accounts {
				a.Settle(time.Minute)
			}
			err = errors.Join(errs...)
		})
		steps += r.Steps
		if r.Finding != nil {
			t.Errorf("seed %d: %v", seed, r.Finding)
			return
		}
		if err == nil {
			err = p.Check(accounts)
		}
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d steps, %v a job, %v a step", steps, time.Since(start)/time.Duration(*count), time.Since(start)/time.Duration(steps))
}
