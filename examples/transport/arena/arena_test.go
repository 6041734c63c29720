package arena_test

import (
	"testing"

	"github.com/goccl/goccl/examples/transport/arena"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/transporttest"
)

func TestTransport(t *testing.T) {
	transporttest.Test(t, func(t testing.TB, ranks int) []transport.Endpoint {
		endpoints, err := arena.New(ranks)
		if err != nil {
			t.Fatal(err)
		}
		return endpoints
	})
}
