package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// After Free, an endpoint does not replace the mapping by private memory: its addresses may hold
// other memory.
func TestNothingIsMappedAfterFree(t *testing.T) {
	useOwnDirectory(t)
	ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
	require.NoError(t, err)
	m := ep.(*mapped)
	require.NoError(t, m.Close())
	require.NoError(t, m.Free())
	other := occupy(t, m.segment.file.arena)
	m.Reject(1, "no") // faults
	require.Error(t, m.segment.file.blank())
	other.release()
}

// After Free, the records are not replaced by private memory either, and a second Free unmaps
// nothing: their addresses may hold other memory.
func TestNothingIsMappedAfterFreeOfRecords(t *testing.T) {
	useOwnDirectory(t)
	ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
	require.NoError(t, err)
	records, err := ep.(*mapped).Records()
	require.NoError(t, err)
	part := records.Part(0)
	require.NoError(t, records.Free())
	other := occupy(t, records.(*flightMemory).file.arena)
	require.Error(t, records.Vanished(fault(&part[0])))
	require.NoError(t, records.Free())
	other.release()
	require.NoError(t, errors.Join(ep.Close(), ep.Free(), ep.Free()))
}

// A Flight that is closed twice closes no file of somebody else, and unmaps nobody's memory.
func TestFlightIsClosedOnce(t *testing.T) {
	useOwnDirectory(t)
	ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
	require.NoError(t, err)
	f, err := OpenFlight("job")
	require.NoError(t, err)
	fd := f.fd
	require.NoError(t, f.Close())
	other := occupy(t, f.file.arena)
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	require.Equal(t, fd, int(file.Fd()), "the number is free again")
	require.NoError(t, f.Close())
	other.release()
	require.NoError(t, errors.Join(file.Close(), ep.Close(), ep.Free()))
}

// occupied is memory of somebody else at the addresses of an arena that was unmapped. Nobody may
// touch it.
type occupied struct {
	t *testing.T
	arena
}

// occupy maps memory at the addresses of an arena that is not mapped.
func occupy(t *testing.T, a arena) occupied {
	t.Helper()
	_, err := unix.MmapPtr(-1, 0, a.base, uintptr(a.size), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE)
	require.NoError(t, err, "the memory is mapped")
	return occupied{t, a}
}

// release unmaps the memory. The test fails if anybody has unmapped or replaced it.
func (o occupied) release() {
	o.t.Helper()
	at, isThere := uintptr(o.base), false
	for area := range strings.Lines(mappedAreas(o.t)) {
		var lo, hi uintptr
		var protection string
		n, _ := fmt.Sscanf(area, "%x-%x %s", &lo, &hi, &protection)
		// The kernel joins such memory with its neighbours.
		isThere = isThere || n == 3 && lo <= at && at+uintptr(o.size) <= hi && protection == "---p"
	}
	require.True(o.t, isThere, "memory of somebody else is gone or was replaced")
	require.NoError(o.t, o.unmap())
}

func mappedAreas(t *testing.T) string {
	text, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return string(text)
}
