package ccl_test

import (
	"errors"
	"flag"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/stress"
)

var (
	departures    = flag.Int("departures", 20, "so many random programs in which ranks leave, on each kind of world")
	departureSeed = flag.Uint64("departure-seed", 0, "of the first of these")
)

// Random programs in which ranks leave at random moments, beside calls, queues and messages:
// every call, send and receive ends, with the right result or with an error that names a rank
// that left, and the program leaves no goroutine or memory behind.
func TestRandomDepartures(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for i := range uint64(*departures) {
			seed := *departureSeed + i
			n := 2 + int(seed%4%3)
			p := stress.NewDepartures(seed, stress.Options{
				Ranks: n, Events: []int{5, 20, 60}[seed/3%3], Longest: []int{100, 3000, 100, 100, 1 << 16}[seed%5],
				Algorithms: []string{"direct", "ring"},
			}, stress.Close, stress.Close, stress.Abort)
			goroutines := runtime.NumGoroutine()
			g := group(t, connect, n)
			accounts := make([]*stress.Account, n)
			done := make(chan error)
			go func() {
				done <- errors.Join(each(n, func(r int) (err error) {
					accounts[r], err = p.Run(bg, g[r], stress.Exits{})
					return err
				})...)
			}()
			select {
			case err := <-done:
				require.NoError(t, err, "seed %d", seed)
			case <-time.After(2 * patient):
				stacks := make([]byte, 1<<20)
				t.Fatalf("seed %d hangs\n%s", seed, stacks[:runtime.Stack(stacks, true)])
			}
			for _, a := range accounts {
				a.Settle(patient)
			}
			if err := p.Check(accounts); err != nil {
				t.Errorf("%v\nagain: go test ./ccl -run '^%s$' -count 100 -departures 1 -departure-seed %d", err, t.Name(), seed)
			}
			for limit := time.Now().Add(patient); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
				if time.Now().After(limit) {
					stacks := make([]byte, 1<<20)
					t.Fatalf("seed %d leaves goroutines\n%s", seed, stacks[:runtime.Stack(stacks, true)])
				}
			}
		}
	})
}
