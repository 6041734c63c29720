package processes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/stress"
)

var randomDepartures = flag.Int("departures", 9, "number of random programs in which ranks leave; one that fails with seed=N is run again by -seed N -departures 1 -count 100")

// departing is the scene of ranks that Spawn hosts, so that the ends of their workers count.
const departing = "departures"

// Random programs in which ranks leave at random moments, by DestroyProcessGroup or by the
// end of their workers: every operation that was started ends, with the right result or an error
// that names a rank that left, and nothing of the job remains.
func TestRandomDepartures(t *testing.T) {
	for i := range uint64(*randomDepartures) {
		seed := *seed + i
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			ranks := 2 + int(seed%3)
			j := start(t, ranks, part{Config: yamlFor(ranks), Timeout: patience / 2, Scene: departing, Seed: seed}, nil)
			accounts := make([]*stress.Account, ranks)
			for _, r := range j.ranks {
				got := r.sound()
				if accounts[r.number] = got.Account; got.Account == nil || got.Err != "" {
					t.Fatalf("rank %d: %s", r.number, got.Err)
				}
			}
			if err := departuresOf(seed, ranks).Check(accounts); err != nil {
				t.Error(err)
			}
			j.leavesNothing()
		})
	}
}

func departuresOf(seed uint64, ranks int) *stress.Departures {
	ways := [][]stress.Way{
		{stress.Destroy, stress.Fail},
		{stress.Destroy, stress.Return},
		{stress.Destroy, stress.Return, stress.Fail},
	}[seed/3%3]
	return stress.NewDepartures(seed, stress.Options{
		Ranks: ranks, Events: []int{5, 20, 60}[seed/9%3], Longest: []int{100, 5000, 100, 100, 1 << 17}[seed%5],
		Algorithms: []string{"direct", "ring", "tree"},
	}, ways...)
}

// departures runs a random program in which ranks leave.
func (p *part) departures(cfg *config.Config, r *result) error {
	enough := errors.New("this rank has had enough")
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(cfg), dist.WithTimeout(p.Timeout)); err != nil {
			return err
		}
		all, err := dist.Default()
		if err != nil {
			return err
		}
		if p.Seed/2%2 == 0 { // short inputs then may lie in shared memory, as far as ranks know
			region, err := ccl.CreateSharedRegion[byte](context.Background(), all.Communicator(), 100)
			if err != nil {
				return err
			}
			if err := region.Close(); err != nil {
				return err
			}
		}
		r.Account, err = departuresOf(p.Seed, all.Size()).Run(context.Background(), all.Communicator(), stress.Exits{
			NewGroup: func(ranks []int) (*ccl.Communicator, func() error, error) {
				g, err := dist.NewGroup(ranks)
				if g == nil {
					return nil, nil, err
				}
				return g.Communicator(), func() error { return dist.DestroyProcessGroup(dist.WithGroup(g)) }, err
			},
			Destroy: func() error { return dist.DestroyProcessGroup(dist.WithGroup(all)) },
		})
		if err == nil && r.Account.Way == stress.Fail {
			err = enough
		}
		return err
	})
	if r.Account != nil {
		r.Account.Settle(p.Timeout)
	}
	if r.Account == nil || err == nil {
		return err
	}
	var lost *dist.PeerLostError
	var aborted *dist.AbortedError
	switch way := r.Account.Way; {
	case way == stress.Fail && errors.Is(err, enough):
		return nil
	case way == stress.Return && (errors.As(err, &lost) || errors.As(err, &aborted) || strings.Contains(err.Error(), "not ended")):
		return nil
	}
	return err
}
