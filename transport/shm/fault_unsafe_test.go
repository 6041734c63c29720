//go:build linux

package shm

import "unsafe"

// faulted simulates the value with which a fault panics.
type faulted uintptr

func fault(p *byte) any { return faulted(uintptr(unsafe.Pointer(p))) }

// Addr returns where it was.
func (f faulted) Addr() uintptr { return uintptr(f) }
