package shm

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// errGone reports that memory of a mapping no longer exists.
var errGone = errors.New("the file was truncated, or its memory is gone")

// guarded runs f. It returns errGone if f touches memory of the arena that no longer exists,
// which would otherwise end the process. Other panics propagate. Goroutines that f starts are
// not guarded.
func (a arena) guarded(f func()) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		v := recover()
		if v == nil {
			return
		}
		if err = a.vanished(v); err == nil {
			panic(v)
		}
	}()

	f()
	return nil
}

// vanished returns errGone if the recovered value v is a fault in the arena.
func (a arena) vanished(v any) error {
	if fault, ok := v.(interface{ Addr() uintptr }); ok {
		if off, ok := a.offsetOf(fault.Addr()); ok && !a.isForbidden() {
			return fmt.Errorf("%w (found at offset %d of %d)", errGone, off, a.size)
		}
	}
	return nil
}

// populate makes n bytes from offset off present and writable in this process, so that the
// first access causes no page fault. It does not change the bytes; other ranks may use them
// meanwhile.
func (a arena) populate(off, n int) error {
	if n == 0 {
		return nil
	}

	page := os.Getpagesize()
	first := off &^ (page - 1)
	b := a.bytes(first, off+n-first)
	for {
		err := unix.Madvise(b, unix.MADV_POPULATE_WRITE)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.EINVAL): // Linux before 5.14
			if err = a.guarded(func() { a.touch(first, off+n) }); err == nil {
				return nil
			}
		case errors.Is(err, unix.EFAULT):
			err = errGone
		}
		return &transport.AllocationFailedError{RequestedBytes: n, Message: fmt.Sprintf("the shared memory cannot be populated: %v", err)}
	}
}

// touch writes to each page of a range without changing it.
func (a arena) touch(from, to int) {
	for off := from; off < to; off += os.Getpagesize() {
		at[interleave.Uint64](a, min(off, a.size-8)&^7).Add(0)
	}
}
