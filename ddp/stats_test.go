package ddp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
)

// Hidden is the share of communication in which the rank did not wait.
func TestHidden(t *testing.T) {
	require.InDelta(t, 0.75, ddp.Stats{Communicating: 4, Waiting: 1}.Hidden(), 1e-9)
	require.Zero(t, ddp.Stats{Communicating: 4, Waiting: 4}.Hidden())
	require.Zero(t, ddp.Stats{}.Hidden(), "without communication")
}
