//go:build linux

package shm

import (
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/internal/interleave"
	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of a file as shared memory, for as long as this process lives.
//
// It opens the file once more for that: a mapping keeps its open file description, with the locks
// of the description, until the kernel has taken the memory of a killed process apart. On a machine
// with many cores this was up to 100 ms after the process had ended.
func mapFile(fd, size int) (arena, error) {
	other, err := openFile(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_CLOEXEC)
	if err != nil {
		return arena{}, fmt.Errorf("open it once more: %w", err)
	}
	defer func() { _ = unix.Close(other) }() // the mapping stays
	return mapWith(other, size, unix.PROT_READ|unix.PROT_WRITE)
}

// mapBriefly is mapFile without another descriptor, which the process may not get.
func mapBriefly(fd, size int) (arena, error) {
	if interleave.IsSeeded() { // a simulated process that is killed keeps its mappings
		return mapFile(fd, size)
	}
	return mapWith(fd, size, unix.PROT_READ|unix.PROT_WRITE)
}

// mapForReading is mapFile for a process that must not write.
func mapForReading(fd, size int) (arena, error) { return mapWith(fd, size, unix.PROT_READ) }

func mapWith(fd, size, protection int) (arena, error) {
	if err := lacks(unix.ENOMEM); err != nil {
		return arena{}, err
	}
	base, err := unix.MmapPtr(fd, 0, nil, uintptr(size), protection, unix.MAP_SHARED)
	if err != nil {
		return arena{}, err
	}
	return arena{base: base, size: size}, nil
}

// unmap unmaps what mapFile has mapped.
func (a arena) unmap() error {
	if interleave.IsSeeded() {
		return a.forbid()
	}
	return unix.MunmapPtr(a.base, uintptr(a.size))
}

// blank replaces the mapping by private memory, all zero.
func (a arena) blank() error {
	_, err := unix.MmapPtr(-1, 0, a.base, uintptr(a.size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED)
	return err
}

// from returns the part of the arena from offset off.
func (a arena) from(off int) arena {
	a.check(off, 0)
	return arena{base: unsafe.Add(a.base, off), size: a.size - off}
}

// offsetOf returns the offset of an address in the arena. ok is false if it lies outside.
func (a arena) offsetOf(addr uintptr) (off int, ok bool) {
	n := addr - uintptr(a.base)
	return int(n), n < uintptr(a.size)
}
