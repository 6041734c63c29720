package dist_test

import (
	"context"
	"errors"
	"flag"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/stress"
)

var (
	departures    = flag.Int("departures", 3, "so many random programs in which ranks leave")
	departureSeed = flag.Uint64("departure-seed", 0, "of the first of these")
)

// Random programs in which ranks leave at random moments, by DestroyProcessGroup or by the
// end of their workers: every call ends with its result or with an error that names
// a rank that left, and the job leaves nothing behind.
func TestRandomDepartures(t *testing.T) {
	cfg, err := config.Parse("test", []byte("version: 1\nalgorithms: {direct: {module: direct}, ring: {module: ring}}\nrules: [{algorithm: direct}]\n"))
	require.NoError(t, err)
	for i := range uint64(*departures) {
		seed := *departureSeed + i
		n := 2 + int(seed%4%3)
		ways := [][]stress.Way{
			{stress.Destroy, stress.Fail},
			{stress.Destroy, stress.Return},
			{stress.Destroy, stress.Return, stress.Fail},
		}[seed%3]
		p := stress.NewDepartures(seed, stress.Options{
			Ranks: n, Events: []int{5, 20, 60}[seed/12%3], Longest: []int{100, 3000, 100, 100, 1 << 16}[seed%5],
			Algorithms: []string{"direct", "ring"},
		}, ways...)
		accounts := make([]*stress.Account, n)
		enough := errors.New("this rank has had enough")
		goroutines := runtime.NumGoroutine()
		err := spawn(t, func(_ context.Context, rank int) error {
			if err := dist.InitProcessGroup("ccl", dist.WithConfig(cfg), dist.WithTimeout(watchdog/2)); err != nil {
				return err
			}
			all, err := dist.Default()
			if err != nil {
				return err
			}
			a, err := p.Run(context.Background(), all.Communicator(), stress.Exits{
				NewGroup: func(ranks []int) (*ccl.Communicator, func() error, error) {
					g, err := dist.NewGroup(ranks)
					if g == nil {
						return nil, nil, err
					}
					return g.Communicator(), func() error { return dist.DestroyProcessGroup(dist.WithGroup(g)) }, err
				},
				Destroy: func() error { return dist.DestroyProcessGroup(dist.WithGroup(all)) },
			})
			accounts[rank] = a
			if err == nil && a.Way == stress.Fail {
				err = enough
			}
			return err
		}, dist.WithRanks(n))
		fails, drains := false, false
		for _, a := range accounts {
			require.NotNil(t, a, "seed %d: %v", seed, err)
			a.Settle(watchdog)
			fails = fails || a.Way == stress.Fail
			drains = drains || a.Way == stress.Return
		}
		var lost *dist.PeerLostError
		var aborted *dist.AbortedError
		switch {
		case err == nil, fails && errors.Is(err, enough):
		case drains && (errors.As(err, &lost) || errors.As(err, &aborted) || strings.Contains(err.Error(), "not ended")):
		default:
			t.Errorf("seed %d: Spawn returns %v", seed, err)
		}
		if err := p.Check(accounts); err != nil {
			t.Errorf("%v\nagain: go test ./dist -run '^%s$' -count 100 -departures 1 -departure-seed %d", err, t.Name(), seed)
		}
		for limit := time.Now().Add(watchdog); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
			if time.Now().After(limit) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("seed %d leaves goroutines\n%s", seed, stacks[:runtime.Stack(stacks, true)])
			}
		}
	}
}
