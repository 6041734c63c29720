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
	repeat(t, func() bool {
		ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
		require.NoError(t, err)
		m := ep.(*mapped)
		require.NoError(t, m.Close())
		require.NoError(t, m.Free())
		other, isFree := occupy(t, m.segment.file.arena)
		if !isFree {
			return false
		}

		m.Reject(1, "no") // faults
		require.Error(t, m.segment.file.blank())
		other.release()
		return true
	})
}

// After Free, the records are not replaced by private memory either, and a second Free unmaps
// nothing: their addresses may hold other memory.
func TestNothingIsMappedAfterFreeOfRecords(t *testing.T) {
	useOwnDirectory(t)
	repeat(t, func() bool {
		ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, errors.Join(ep.Close(), ep.Free(), ep.Free())) }()
		records, err := ep.(*mapped).Records()
		require.NoError(t, err)
		part := records.Part(0)
		require.NoError(t, records.Free())
		other, isFree := occupy(t, records.(*flightMemory).file.arena)
		if !isFree {
			return false
		}

		require.Error(t, records.Vanished(fault(&part[0])))
		require.NoError(t, records.Free())
		other.release()
		return true
	})
}

// A job's name without its end stands for it, also after restarts.
func TestNameOfJob(t *testing.T) {
	for name, isOf := range map[string]bool{
		"goccl-ab": true, "goccl-ab-1": true, "goccl-ab.2-13": true, "goccl-ab.2": true,
		"goccl-abc": false, "goccl-abc-1": false, "goccl-ab-x": false, "goccl-ab7": false, "goccl-ab.2x-1": false, "goccl-a": false,
	} {
		require.Equal(t, isOf, header{name: name}.isOf("goccl-ab"), name)
	}
	require.True(t, header{name: "goccl-ab.1-1"}.isOf("goccl-ab.1"))
	require.True(t, header{name: "goccl-ab.1-1"}.isOf("goccl-ab.1-1"))
	require.False(t, header{name: "goccl-ab.1-1"}.isOf("goccl-ab-1"))
}

// A Flight that is closed twice closes no file of somebody else, and unmaps nobody's memory.
func TestFlightIsClosedOnce(t *testing.T) {
	useOwnDirectory(t)
	repeat(t, func() bool {
		ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, errors.Join(ep.Close(), ep.Free())) }()
		f, err := OpenFlight("job")
		require.NoError(t, err)
		fd := f.fd
		require.NoError(t, f.Close())
		other, isFree := occupy(t, f.file.arena)
		if !isFree {
			return false
		}

		file, err := os.Open(os.DevNull)
		require.NoError(t, err)
		require.Equal(t, fd, int(file.Fd()), "the number is free again")
		require.NoError(t, f.Close())
		other.release()
		require.NoError(t, file.Close())
		return true
	})
}

// repeat runs a test until it finds the addresses that it has unmapped free. The Go runtime may have
// mapped memory there meanwhile.
func repeat(t *testing.T, test func() bool) {
	t.Helper()
	for range 20 {
		if test() {
			return
		}
	}
	t.Fatal("the addresses of unmapped memory were taken 20 times in turn")
}

// occupied is memory of somebody else at the addresses of an arena that was unmapped. Nobody may
// touch it.
type occupied struct {
	t *testing.T
	arena
}

// occupy maps memory at the addresses of an arena, unless something is mapped there.
func occupy(t *testing.T, a arena) (o occupied, isFree bool) {
	t.Helper()
	_, err := unix.MmapPtr(-1, 0, a.base, uintptr(a.size), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return occupied{}, false
	}
	require.NoError(t, err)
	return occupied{t, a}, true
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
