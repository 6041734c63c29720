//go:build interleave && linux

package seeds

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
	"github.com/goccl/goccl/transport/tcp"
	"github.com/goccl/goccl/transport/transporttest"
)

var suites = flag.Int("suites", 1, "so many seeds of the conformance suite for each transport")

// The transports conform under seeds. Of the checks, those for leaks do not count goroutines and
// memory: package interleave counts goroutines and timers.
func TestTransports(t *testing.T) {
	for name, open := range map[string]func(t testing.TB, ranks int) []transport.Endpoint{
		"local":     func(_ testing.TB, ranks int) []transport.Endpoint { return local.New(ranks) },
		"heap":      openHeap,
		"processes": openProcesses,
		"packets":   openPackets,
	} {
		for i := range uint64(*suites) {
			seed := *firstSeed + i
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				interleave.SetProcessors([]int{1, 16}[seed%2])
				simulateProcesses(t, seed)
				shm.Simulate(directory, func(ranks int) shm.Geometry {
					g := geometryOf(seed)(ranks)
					g.Flight = flight.PartBytes(ranks)
					return g
				})
				transporttest.TestUnder(t, open, func(t *testing.T, check func()) {
					r := interleave.Run(t, interleave.Options{Seed: seed, Limit: 50_000_000}, check)
					if r.Finding != nil {
						t.Error(r.Finding)
					}
					if err := shm.EndSimulation(func(string) bool { return t.Failed() }); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

func openHeap(t testing.TB, ranks int) []transport.Endpoint {
	eps, err := shm.NewHeap(ranks, shm.SmallestGeometry(ranks))
	if err != nil {
		t.Fatal(err)
	}
	return eps
}

// openProcesses joins processes. The checks themselves belong to none.
func openProcesses(t testing.TB, ranks int) []transport.Endpoint {
	return joinAll(t, ranks, func(rank int) (transport.Endpoint, error) {
		return shm.Join(context.Background(), shm.Job{Name: "suite", Rank: rank, Size: ranks})
	})
}

// openPackets joins processes that a net connects.
func openPackets(t testing.TB, ranks int) []transport.Endpoint {
	net := tcp.NewNet(ranks, 0)
	return joinAll(t, ranks, func(rank int) (transport.Endpoint, error) { return net.Join(context.Background(), rank) })
}

// joinAll joins ranks at the same time.
func joinAll(t testing.TB, ranks int, joinRank func(rank int) (transport.Endpoint, error)) []transport.Endpoint {
	eps, errs := make([]transport.Endpoint, ranks), make([]error, ranks)
	var all interleave.WaitGroup
	for rank := range ranks {
		all.Go(func() { eps[rank], errs[rank] = joinRank(rank) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return eps
}
