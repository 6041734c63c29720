package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// After Free, an endpoint does not replace the mapping by private memory: its addresses may hold
// other memory.
func TestNothingIsMappedAfterFree(t *testing.T) {
	useOwnDirectory(t)
	ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
	require.NoError(t, err)
	m := ep.(*mapped)
	at := fmt.Sprintf("%x-", uintptr(m.segment.file.base))
	require.Contains(t, mappedAreas(t), at)
	require.NoError(t, m.Close())
	require.NoError(t, m.Free())
	require.NotContains(t, mappedAreas(t), at)
	m.Reject(1, "no") // faults
	require.NotContains(t, mappedAreas(t), at)
	require.Error(t, m.segment.file.blank())

}

// After Free, the records are not replaced by private memory either, and a second Free unmaps nothing: their addresses may hold other
// memory.
func TestNothingIsMappedAfterFreeOfRecords(t *testing.T) {
	useOwnDirectory(t)
	ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
	require.NoError(t, err)
	records, err := ep.(*mapped).Records()
	require.NoError(t, err)
	part := records.Part(0)
	at := fmt.Sprintf("%x-", uintptr(records.(*flightMemory).file.base))
	require.Contains(t, mappedAreas(t), at)
	require.NoError(t, records.Free())
	require.NotContains(t, mappedAreas(t), at)
	require.Error(t, records.Vanished(fault(&part[0])))
	require.NotContains(t, mappedAreas(t), at)

	other := records.(*flightMemory).file.arena
	require.NoError(t, other.blank()) // somebody else's memory is there now
	require.NoError(t, records.Free())
	require.Contains(t, mappedAreas(t), at)
	require.NoError(t, other.unmap())
	require.NoError(t, errors.Join(ep.Close(), ep.Free(), ep.Free()))
}

// A Flight that is closed twice closes no file of somebody else, and unmaps nobody's memory.
func TestFlightIsClosedOnce(t *testing.T) {
	useOwnDirectory(t)
	ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
	require.NoError(t, err)
	f, err := OpenFlight("job")
	require.NoError(t, err)
	other := f.file.arena
	fd := f.fd
	require.NoError(t, f.Close())
	require.NoError(t, other.blank())
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	require.Equal(t, fd, int(file.Fd()), "the number is free again")
	require.NoError(t, f.Close())
	require.Contains(t, mappedAreas(t), fmt.Sprintf("%x-", uintptr(other.base)))
	require.NoError(t, errors.Join(other.unmap(), file.Close(), ep.Close(), ep.Free()))
}

func mappedAreas(t *testing.T) string {
	text, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\n", " ")
}
