package shm

import (
	"runtime"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Two ranks share a core if both have lost the same one within a short time.
func TestSharedCores(t *testing.T) {
	at := func(ms, core int) lostCore { return lostCore(ms<<16 | core + 1) }
	require.True(t, at(100, 0).sharedWith(at(100, 0)))
	require.True(t, at(100, 3).sharedWith(at(80, 3)))
	require.True(t, at(80, 3).sharedWith(at(100, 3)))
	require.False(t, at(100, 3).sharedWith(at(79, 3)))
	require.False(t, at(79, 3).sharedWith(at(100, 3)))
	require.False(t, at(100, 3).sharedWith(at(100, 2)))
	require.False(t, at(100, 0).sharedWith(0))
	require.False(t, lostCore(0).sharedWith(0))
}

// A rank that has lost the same core as another one leaves it, and may return later.
func TestRanksLeaveACoreThatTheyShare(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, now unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	defer func() { require.NoError(t, unix.SchedSetaffinity(0, &all)) }()
	p := &processes{cores: []*interleave.Uint64{new(interleave.Uint64), new(interleave.Uint64)}}

	p.LostCore(0)
	require.NotZero(t, p.cores[0].Load())
	require.Zero(t, p.cores[1].Load())
	p.LostCore(0) // its own word does not count
	require.NotZero(t, p.cores[0].Load())

	currentOnly := unix.CPUSet{}
	currentOnly.Set(currentCore().number())
	require.NoError(t, unix.SchedSetaffinity(0, &currentOnly))
	p.LostCore(0)
	p.LostCore(1) // which may use no other core
	require.NotZero(t, p.cores[1].Load())
	require.NoError(t, unix.SchedGetaffinity(0, &now))
	require.Equal(t, currentOnly, now)

	if all.Count() < 2 {
		t.Skip("there is one core")
	}
	// The system may move the thread back at any time, but not always.
	moved := false
	for range 100 {
		require.NoError(t, unix.SchedSetaffinity(0, &all))
		before := currentCore()
		p.cores[0].Store(uint64(before))
		p.LostCore(1)
		if p.cores[1].Load() == 0 {
			moved = moved || currentCore().number() != before.number()
		}
		require.NoError(t, unix.SchedGetaffinity(0, &now))
		require.Equal(t, all, now)
	}
	require.True(t, moved)
}
