package ccl_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// closedAtEnter is an endpoint that is closed, when armed, between the check that begins a call
// and its Enter.
type closedAtEnter struct {
	transport.Endpoint
	armed bool
}

func (ep *closedAtEnter) Enter(e *transport.Arrival) (transport.Role, error) {
	if ep.armed {
		if err := ep.Close(); err != nil {
			return transport.RunOwn, err
		}
	}
	return ep.Endpoint.Enter(e)
}

// If a call that runs concurrently with Close returns nil, it has run: it does not mistake the end
// of the previous call for its own.
func TestCloseAtTheBeginOfACall(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{4, 5000} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				ep := new(closedAtEnter)
				g := group(t, func(ranks int) ([]transport.Endpoint, error) {
					eps, err := connect(ranks)
					ep.Endpoint, eps[0] = eps[0], ep
					return eps, err
				}, 2)
				allSum(t, g, n)
				ep.armed = true
				errs := each(2, func(r int) error { return sum(g[r], n) })
				require.ErrorIs(t, errs[0], ccl.ErrClosed)
				lost, ok := errors.AsType[*transport.PeerLostError](errs[1])
				require.True(t, ok, "%v", errs[1])
				require.Equal(t, 0, lost.Rank)
			})
		}
	})
}
