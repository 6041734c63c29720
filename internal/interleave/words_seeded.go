//go:build interleave

package interleave

import "sync/atomic"

// Bool is an atomic.Bool whose methods are steps.
type Bool struct{ v atomic.Bool }

// Load is atomic.Bool's.
func (w *Bool) Load() bool {
	step()
	v := w.v.Load()
	noteLoad(w, bit(v))
	return v
}

// Store is atomic.Bool's.
func (w *Bool) Store(value bool) {
	step()
	w.v.Store(value)
}

// Swap is atomic.Bool's.
func (w *Bool) Swap(value bool) bool {
	step()
	return w.v.Swap(value)
}

// CompareAndSwap is atomic.Bool's.
func (w *Bool) CompareAndSwap(from, to bool) bool {
	step()
	return w.v.CompareAndSwap(from, to)
}

func (w *Bool) bits() uint64 { return bit(w.v.Load()) }

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Int32 is an atomic.Int32 whose methods are steps.
type Int32 struct{ v atomic.Int32 }

// Load is atomic.Int32's.
func (w *Int32) Load() int32 {
	step()
	v := w.v.Load()
	noteLoad(w, uint64(v))
	return v
}

// Store is atomic.Int32's.
func (w *Int32) Store(value int32) {
	step()
	w.v.Store(value)
}

// Add is atomic.Int32's.
func (w *Int32) Add(delta int32) int32 {
	step()
	return w.v.Add(delta)
}

// Swap is atomic.Int32's.
func (w *Int32) Swap(value int32) int32 {
	step()
	return w.v.Swap(value)
}

// CompareAndSwap is atomic.Int32's.
func (w *Int32) CompareAndSwap(from, to int32) bool {
	step()
	return w.v.CompareAndSwap(from, to)
}

func (w *Int32) bits() uint64 { return uint64(w.v.Load()) }

// Int64 is an atomic.Int64 whose methods are steps.
type Int64 struct{ v atomic.Int64 }

// Load is atomic.Int64's.
func (w *Int64) Load() int64 {
	step()
	v := w.v.Load()
	noteLoad(w, uint64(v))
	return v
}

// Store is atomic.Int64's.
func (w *Int64) Store(value int64) {
	step()
	w.v.Store(value)
}

// Add is atomic.Int64's.
func (w *Int64) Add(delta int64) int64 {
	step()
	return w.v.Add(delta)
}

// Swap is atomic.Int64's.
func (w *Int64) Swap(value int64) int64 {
	step()
	return w.v.Swap(value)
}

// CompareAndSwap is atomic.Int64's.
func (w *Int64) CompareAndSwap(from, to int64) bool {
	step()
	return w.v.CompareAndSwap(from, to)
}

func (w *Int64) bits() uint64 { return uint64(w.v.Load()) }

// Uint32 is an atomic.Uint32 whose methods are steps.
type Uint32 struct{ v atomic.Uint32 }

// Load is atomic.Uint32's.
func (w *Uint32) Load() uint32 {
	step()
	v := w.v.Load()
	noteLoad(w, uint64(v))
	return v
}

// Store is atomic.Uint32's.
func (w *Uint32) Store(value uint32) {
	step()
	w.v.Store(value)
}

// Add is atomic.Uint32's.
func (w *Uint32) Add(delta uint32) uint32 {
	step()
	return w.v.Add(delta)
}

// Swap is atomic.Uint32's.
func (w *Uint32) Swap(value uint32) uint32 {
	step()
	return w.v.Swap(value)
}

// CompareAndSwap is atomic.Uint32's.
func (w *Uint32) CompareAndSwap(from, to uint32) bool {
	step()
	return w.v.CompareAndSwap(from, to)
}

func (w *Uint32) bits() uint64 { return uint64(w.v.Load()) }

// Uint64 is an atomic.Uint64 whose methods are steps.
type Uint64 struct{ v atomic.Uint64 }

// Load is atomic.Uint64's.
func (w *Uint64) Load() uint64 {
	step()
	v := w.v.Load()
	noteLoad(w, uint64(v))
	return v
}

// Store is atomic.Uint64's.
func (w *Uint64) Store(value uint64) {
	step()
	w.v.Store(value)
}

// Add is atomic.Uint64's.
func (w *Uint64) Add(delta uint64) uint64 {
	step()
	return w.v.Add(delta)
}

// Swap is atomic.Uint64's.
func (w *Uint64) Swap(value uint64) uint64 {
	step()
	return w.v.Swap(value)
}

// CompareAndSwap is atomic.Uint64's.
func (w *Uint64) CompareAndSwap(from, to uint64) bool {
	step()
	return w.v.CompareAndSwap(from, to)
}

func (w *Uint64) bits() uint64 { return uint64(w.v.Load()) }
