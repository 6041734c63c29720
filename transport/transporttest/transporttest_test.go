package transporttest

import (
	"testing"

	"github.com/goccl/goccl/transport"
)

func open(kind naiveKind) func(testing.TB, int) []transport.Endpoint {
	return func(_ testing.TB, ranks int) []transport.Endpoint { return newNaive(ranks, kind) }
}

func TestNaive(t *testing.T) {
	t.Run("shared memory", func(t *testing.T) { Test(t, open(naiveKind{})) })
	t.Run("shared memory, last arriver runs all", func(t *testing.T) { Test(t, open(naiveKind{parks: true})) })
	t.Run("copies", func(t *testing.T) { Test(t, open(naiveKind{copies: true})) })
}
