//go:build linux

package shm

import "unsafe"

// faulted is what a fault panics with, as far as that matters.
type faulted uintptr

func fault(p *byte) any { return faulted(uintptr(unsafe.Pointer(p))) }

// Addr returns where it was.
func (f faulted) Addr() uintptr { return uintptr(f) }
