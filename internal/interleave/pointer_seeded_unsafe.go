//go:build interleave

package interleave

import (
	"sync/atomic"
	"unsafe"
)

// Pointer is an atomic.Pointer whose methods are steps.
type Pointer[T any] struct{ v atomic.Pointer[T] }

// Load is atomic.Pointer's.
func (w *Pointer[T]) Load() *T {
	step()
	v := w.v.Load()
	noteLoad(w, address(v))
	return v
}

// Store is atomic.Pointer's.
func (w *Pointer[T]) Store(value *T) {
	step()
	w.v.Store(value)
}

// Swap is atomic.Pointer's.
func (w *Pointer[T]) Swap(value *T) *T {
	step()
	return w.v.Swap(value)
}

// CompareAndSwap is atomic.Pointer's.
func (w *Pointer[T]) CompareAndSwap(from, to *T) bool {
	step()
	return w.v.CompareAndSwap(from, to)
}

func (w *Pointer[T]) bits() uint64 { return address(w.v.Load()) }

// address tells two pointers apart. It enters no choice.
func address[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

// plain is a word of memory that is no Uint64.
type plain struct{ word uint64 }

func (w *plain) bits() uint64 { return atomic.LoadUint64(&w.word) }

// LoadUint64 is atomic.LoadUint64, and a step.
func LoadUint64(word *uint64) uint64 {
	step()
	v := atomic.LoadUint64(word)
	noteLoad((*plain)(unsafe.Pointer(word)), v)
	return v
}

// StoreUint64 is atomic.StoreUint64, and a step.
func StoreUint64(word *uint64, value uint64) {
	step()
	atomic.StoreUint64(word, value)
}
