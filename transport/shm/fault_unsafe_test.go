//go:build linux

package shm

import "unsafe"

// faulted stands for the value with which a fault panics.
type faulted uintptr

func fault(p *byte) any { return faulted(uintptr(unsafe.Pointer(p))) }

// Addr returns the address of the fault.
func (f faulted) Addr() uintptr { return uintptr(f) }
