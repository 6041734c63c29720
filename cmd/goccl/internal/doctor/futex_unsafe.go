//go:build linux

package doctor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// futex makes the system call on the first word of a page.
func futex(page []byte, op int, value uint32, timeout *unix.Timespec) error {
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&page[0])), uintptr(op), uintptr(value),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
