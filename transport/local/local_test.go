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
