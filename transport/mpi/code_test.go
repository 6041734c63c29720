//go:build linux && (amd64 || arm64)

package mpi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/mpi/internal/abi"
)

// The code of a library's error reaches the other processes, which do not get the error itself.
func TestCodeTravels(t *testing.T) {
	err := &abi.Error{Function: "MPI_Allreduce", Class: 9, Code: 403, Text: "invalid operation"}
	f := &transport.Failure{Kind: transport.FailureAborted, By: 1, Text: err.Error(), Code: transport.LibraryCode(err), Cause: err}
	got, none := decodeFailure(encodeFailure(f), 3)
	require.NoError(t, none)
	require.Equal(t, 403, got.Code)
	require.NoError(t, got.Cause)
	require.Contains(t, got.Text, "MPI_Allreduce: invalid operation")
}
