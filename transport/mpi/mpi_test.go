//go:build linux && (amd64 || arm64)

package mpi

import (
	"sync"
	"testing"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/transporttest"
	"github.com/stretchr/testify/require"
)

// open connects ranks by a net.
func open(t testing.TB, ranks int) []transport.Endpoint { return joinAll(t, processes(ranks)) }

// joinAll joins the ranks of processes.
func joinAll(t testing.TB, all []*process) []transport.Endpoint {
	eps := make([]transport.Endpoint, len(all))
	errs := make([]error, len(all))
	var joining sync.WaitGroup
	for i, p := range all {
		joining.Go(func() { eps[i], errs[i] = p.joinWorld(t.Context(), 1) })
	}
	joining.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return eps
}

func TestTransport(t *testing.T) { transporttest.Test(t, open) }
