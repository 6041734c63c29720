package local_test

import (
	"testing"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/transporttest"
)

// Both ways of waiting are forced, whatever the machine.
func TestConformance(t *testing.T) {
	for name, how := range map[string]local.Waiting{"poll": local.Poll, "park": local.Park} {
		t.Run(name, func(t *testing.T) {
			transporttest.Test(t, func(_ testing.TB, ranks int) []transport.Endpoint {
				return local.NewWaiting(ranks, how)
			})
		})
	}
}

// formed opens a group of some ranks of a larger one, which has ended.
func formed(t testing.TB, ranks int, how local.Waiting) []transport.Endpoint {
	outer := local.NewWaiting(ranks+1, how)
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
}

func TestGroupConformance(t *testing.T) {
	for name, how := range map[string]local.Waiting{"poll": local.Poll, "park": local.Park} {
		t.Run(name, func(t *testing.T) {
			transporttest.Test(t, func(t testing.TB, ranks int) []transport.Endpoint { return formed(t, ranks, how) })
		})
	}
}
