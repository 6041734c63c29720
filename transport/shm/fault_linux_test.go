package shm

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// alone returns the segment of a job of one rank.
func alone(t *testing.T, size int) *segment {
	t.Helper()
	useOwnDirectory(t)
	s, err := openSegment(context.Background(), Job{Name: "job", Size: 1}, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A rank that touches a truncated file gets an error.
func TestTruncatedUnderTheMapping(t *testing.T) {
	s := alone(t, 1<<16)
	if err := unix.Ftruncate(s.fd, 0); err != nil {
		t.Fatal(err)
	}
	allowed := make([]byte, 8192)
	word := at[interleave.Uint64](s.arena, 4096)
	for what, f := range map[string]func(){
		"load":     func() { runtime.KeepAlive(s.bytes(100, 1)[0]) },
		"store":    func() { s.bytes(100, 1)[0] = 1 },
		"copy in":  func() { copy(s.bytes(0, 8192), allowed) },
		"copy out": func() { copy(allowed, s.bytes(0, 8192)) },
		"atomic":   func() { word.Store(word.Load() + 1) },
		"last":     func() { s.bytes(1<<16-1, 1)[0] = 1 },
	} {
		err := s.safely(func() error { f(); return errors.New("not reached") })
		if !errors.Is(err, errGone) || !strings.Contains(err.Error(), s.path) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var failed *transport.AllocationFailedError
	if err := s.populate(0, 1<<16); !errors.As(err, &failed) || failed.RequestedBytes != 1<<16 || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("populate: %v", err)
	}
}

// A rank gets an error if the file is truncated while the ranks gather.
func TestTruncatedWhileGathering(t *testing.T) {
	useOwnDirectory(t)
	defer stopAt(func(point string) {
		if point == "named" {
			if err := os.Truncate(filePath("job"), 0); err != nil {
				t.Error(err)
			}
		}
	})()
	if _, err := openSegment(context.Background(), Job{Name: "job", Size: 2}, 100); !errors.Is(err, errGone) {
		t.Errorf("got %v, want %v", err, errGone)
	}
}

// Only faults in the segment become errors; other panics propagate. The guard ends with its function.
func TestGuardedLetsOthersGo(t *testing.T) {
	s := alone(t, 100)
	other := alone(t, 100)
	if err := unix.Ftruncate(other.fd, 0); err != nil {
		t.Fatal(err)
	}
	var none *int
	for what, f := range map[string]func(){
		"panic":           func() { panic("mine") },
		"nil":             func() { *none = 1 },
		"another mapping": func() { other.bytes(0, 1)[0] = 1 },
		"beyond":          func() { s.bytes(99, 2)[0] = 1 },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: did not panic", what)
				}
			}()
			err := s.file.guarded(f)
			t.Errorf("%s: returned %v", what, err)
		}()
	}
	if err := s.file.guarded(func() { s.bytes(99, 1)[0] = 1 }); err != nil {
		t.Error(err)
	}
	if debug.SetPanicOnFault(false) {
		t.Error("faults are still panics")
	}
	want := errors.New("mine")
	if err := s.safely(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// Populated memory keeps its contents, and accesses to it cause no page faults.
func TestPopulate(t *testing.T) {
	page := os.Getpagesize()
	s := alone(t, 600*page+24)
	s.bytes(page, 1)[0] = 7
	if err := errors.Join(s.populate(0, 0), s.populate(page+5, 511*page), s.populate(600*page, 24)); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	faults := func() int {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
			t.Fatal(err)
		}
		return int(u.Minflt)
	}
	before := faults()
	for i := range 512 {
		s.bytes((i+1)*page+5, 1)[0]++
	}
	if n := faults() - before; n > 100 {
		t.Errorf("%d faults for 512 populated pages", n)
	}
	if s.bytes(page, 1)[0] != 7 {
		t.Error("the memory has changed")
	}
}

// If the kernel cannot populate memory, populate touches its pages. The kernel cannot if the memory
// starts inside a page.
func TestPopulateByTouching(t *testing.T) {
	a := heapArena(5*os.Getpagesize() + 100).from(128)
	for i := range a.bytes(0, a.size) {
		a.bytes(i, 1)[0] = byte(i)
	}
	if err := errors.Join(a.populate(0, a.size), a.populate(a.size-1, 1)); err != nil {
		t.Fatal(err)
	}
	for i, b := range a.bytes(0, a.size) {
		if b != byte(i) {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	s := alone(t, 1<<16)
	s.touch(0, 1<<16)
	if err := unix.Ftruncate(s.fd, 0); err != nil {
		t.Fatal(err)
	}
	var failed *transport.AllocationFailedError
	if err := s.from(128).populate(0, 4096); !errors.As(err, &failed) || failed.RequestedBytes != 4096 || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("got %v", err)
	}
}

// alive allocates nothing.
func TestAliveAllocatesNothing(t *testing.T) {
	s := alone(t, 100)
	s.rank = 1 // it tests the lock of its own description, which does not conflict
	if n := testing.AllocsPerRun(100, func() {
		if s.isAlive(0) {
			t.Error("one's own lock is not in the way")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
