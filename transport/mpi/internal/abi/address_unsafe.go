//go:build linux && (amd64 || arm64)

package abi

import "unsafe"

// address converts a pointer for a call. What it points to must be pinned, or escape, since memory
// on a goroutine's stack moves.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// escape makes the compiler place what p points to on the heap, where memory does not move.
func escape[T any](p *T) {
	if sink.never {
		sink.kept = p
	}
}

var sink struct {
	never bool
	kept  any
}
