package local_test

import (
	"testing"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/transporttest"
)

// The suite runs with both ways of waiting, whatever the number of cores.
func TestConformance(t *testing.T) {
	for name, how := range map[string]local.Waiting{"poll": local.Poll, "park": local.Park} {
		t.Run(name, func(t *testing.T) {
			transporttest.Test(t, func(_ testing.TB, ranks int) []transport.Endpoint {
				return local.NewWaiting(ranks, how)
			})
		})
	}
}

// A group formed by ranks of a larger group passes the suite after the larger group was closed.
func TestGroupConformance(t *testing.T) {
	transporttest.Test(t, func(t testing.TB, ranks int) []transport.Endpoint {
		outer := local.NewWaiting(ranks+1, local.Poll)
		members := make([]int, ranks)
		for i := range members {
			members[i] = ranks - i
		}
		eps := make([]transport.Endpoint, ranks)
		for i, m := range members {
			ep, err := outer[m].(transport.Groups).Group(t.Context(), 7, members)
			if err != nil {
				t.Fatal(err)
			}
			eps[i] = ep
		}
		for _, ep := range outer {
			if err := ep.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return eps
	})
}

// P2P messages do not allocate after the first one between two ranks.
func TestP2PAllocatesNothing(t *testing.T) {
	eps := local.NewWaiting(2, local.Poll)
	from, to := eps[0].P2P(), eps[1].P2P()
	there := func() bool { _, ok, _ := to.TryNext(0); return ok }
	m := transport.Message{Bytes: make([]byte, 100), Total: 100}
	exchange := func() {
		if _, ok, err := from.TryPut(1, &m); !ok || err != nil {
			t.Fatal(ok, err)
		}
		to.Rest(there, false)
		to.Rest(there, true)
		to.Take(0)
		if !from.TryDrained(1) || from.Lost(1) != nil {
			t.Fatal("not taken")
		}
	}
	exchange()
	if n := testing.AllocsPerRun(100, exchange); n != 0 {
		t.Errorf("%v allocations per message", n)
	}
}
