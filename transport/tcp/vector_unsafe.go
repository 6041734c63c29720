//go:build linux

package tcp

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vector is memory of one system call.
type vector [8]unix.Iovec

// order makes what happens before a write happen before a read that follows it, also for the race
// detector, which does not see that bytes go through the kernel.
var order atomic.Uint64

// read reads to pieces of memory, one after the other. The socket does not block, so neither does
// the thread.
func (v *vector) read(fd int, to [][]byte) (n int, err unix.Errno) {
	n, err = v.call(unix.SYS_READV, fd, to)
	order.Load()
	return n, err
}

// write writes pieces of memory, one after the other.
func (v *vector) write(fd int, from [][]byte) (n int, err unix.Errno) {
	order.Add(1)
	return v.call(unix.SYS_WRITEV, fd, from)
}

func (v *vector) call(number uintptr, fd int, pieces [][]byte) (n int, err unix.Errno) {
	for i, b := range pieces {
		v[i].Base = unsafe.SliceData(b)
		v[i].SetLen(len(b))
	}
	r, _, err := unix.RawSyscall(number, uintptr(fd), uintptr(unsafe.Pointer(v)), uintptr(len(pieces)))
	runtime.KeepAlive(pieces)
	clear(v[:len(pieces)])
	if err != 0 {
		return 0, err
	}
	return int(r), 0
}
