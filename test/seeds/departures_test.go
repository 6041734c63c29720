//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/transport/local"
)

// runDepartures runs a program of calls and messages on goroutines, in which ranks leave.
func runDepartures(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	ranks := 2 + int(seed%3)
	p := stress.NewDepartures(seed, stress.Options{Ranks: ranks, Events: 10, Longest: 40, Algorithms: []string{"direct", "ring"}},
		stress.Close, stress.Close, stress.Abort)
	accounts, errs := make([]*stress.Account, ranks), make([]error, ranks)
	interleave.SetProcessors([]int{1, 8}[seed/3%2])

	r := interleave.Run(t, o, func() {
		var all interleave.WaitGroup
		for rank, ep := range local.New(ranks) {
			all.Go(func() {
				interleave.SetLabel(fmt.Sprint("rank ", rank))
				c, err := ccl.New(context.Background(), ep)
				if err == nil {
					accounts[rank], err = p.Run(context.Background(), c, stress.Exits{})
				}
				errs[rank] = err
			})
		}
		all.Wait()
		for _, a := range accounts {
			a.Settle(time.Minute)
		}
	})
	if r.Finding != nil {
		return r, nil
	}
	if err := errors.Join(errs...); err != nil {
		return r, err
	}
	return r, p.Check(accounts)
}
