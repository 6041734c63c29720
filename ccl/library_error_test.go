package ccl_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// libraryError is an error of a call of a transport's library.
type libraryError struct{ code int }

func (e *libraryError) Error() string    { return "MPI_Allreduce: no such operation" }
func (e *libraryError) LibraryCode() int { return e.code }

// The error of a call that a library's error has ended has the library's code and its text on all
// ranks, and so have later calls. Other failures have no code.
func TestMPIErrorCode(t *testing.T) {
	fails := &ccl.Kernel{Run: func(c *ccl.Call) error {
		if c.Rank() == 1 {
			return fmt.Errorf("all_reduce: %w", &libraryError{403})
		}
		return c.Recv(1, c.Out())
	}}
	gives := &ccl.Kernel{Run: func(c *ccl.Call) error {
		if c.Rank() == 1 {
			return errors.New("MPI_Allreduce: no such operation")
		}
		return c.Recv(1, c.Out())
	}}
	connect := func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }
	for name, want := range map[string]int{"fails": 403, "gives": 0} {
		g := join(t, connect, settings(t, 3, patient, map[string]*ccl.Kernel{"fails": fails, "gives": gives}))
		for range 2 { // the call, and one after it
			for r, err := range each(3, func(r int) error { return sum(g[r], 5, ccl.WithAlgorithm(name)) }) {
				failed, ok := errors.AsType[*ccl.CollectiveFailedError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, want, failed.MPIErrorCode, "%s, rank %d", name, r)
				require.ErrorContains(t, err, "MPI_Allreduce: no such operation")
			}
		}
	}
}
