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
