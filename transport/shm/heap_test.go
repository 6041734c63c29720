package shm_test

import (
	"testing"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
	"github.com/goccl/goccl/transport/transporttest"
)

func TestConformance(t *testing.T) {
	for name, geometry := range map[string]func(ranks int) shm.Geometry{
		"default":  shm.DefaultGeometry,
		"smallest": shm.SmallestGeometry,
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Test(t, func(t testing.TB, ranks int) []transport.Endpoint {
				eps, err := shm.NewHeap(ranks, geometry(ranks))
				if err != nil {
					t.Fatal(err)
				}
				return eps
			})
		})
	}
}

// A group of some ranks of a larger group, which is closed.
func TestGroupConformance(t *testing.T) {
	transporttest.Test(t, func(t testing.TB, ranks int) []transport.Endpoint {
		outer, err := shm.NewHeap(ranks+1, shm.SmallestGeometry(ranks+1))
		if err != nil {
			t.Fatal(err)
		}
		members := make([]int, ranks)
		for i := range members {
			members[i] = ranks - i
		}
		eps := make([]transport.Endpoint, ranks)
		for i, m := range members {
			if eps[i], err = outer[m].(transport.Groups).Group(t.Context(), 7, members); err != nil {
				t.Fatal(err)
			}
		}
		for _, ep := range outer {
			if err := ep.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return eps
	})
}
