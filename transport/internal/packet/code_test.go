package packet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
)

// libraryError is an error of a library, with its code.
type libraryError int

func (libraryError) Error() string      { return "MPI_Allreduce: invalid operation" }
func (e libraryError) LibraryCode() int { return int(e) }

// The code of a library's error reaches the other processes, which do not get the error itself.
func TestCodeTravels(t *testing.T) {
	err := libraryError(403)
	f := &transport.Failure{Kind: transport.FailureAborted, By: 1, Text: err.Error(), Code: transport.LibraryCode(err), Cause: err}
	got, none := decodeFailure(encodeFailure(f), 3)
	require.NoError(t, none)
	require.Equal(t, 403, got.Code)
	require.NoError(t, got.Cause)
	require.Contains(t, got.Text, "MPI_Allreduce: invalid operation")
}
