//go:build interleave

package interleave

import (
	"sync/atomic"
	"unsafe"
)

// Words whose methods are steps.
type (
	Bool   = cell[bool, atomic.Bool, *atomic.Bool]
	Int32  = number[int32, atomic.Int32, *atomic.Int32]
	Int64  = number[int64, atomic.Int64, *atomic.Int64]
	Uint32 = number[uint32, atomic.Uint32, *atomic.Uint32]
	Uint64 = number[uint64, atomic.Uint64, *atomic.Uint64]

	Pointer[T any] = cell[*T, atomic.Pointer[T], *atomic.Pointer[T]]
)

// value is what the types of package atomic have in common.
type value[T, W any] interface {
	*W
	Load() T
	Store(value T)
	Swap(value T) T
	CompareAndSwap(from, to T) bool
}

// cell is a word W of package atomic, which holds a T.
type cell[T, W any, P value[T, W]] struct{ v W }

// Load is package atomic's.
func (w *cell[T, W, P]) Load() T {
	step()
	v := P(&w.v).Load()
	noteLoad(w.load())
	touch(&w.v, true, false)
	return v
}

// Store is package atomic's.
func (w *cell[T, W, P]) Store(value T) {
	step()
	P(&w.v).Store(value)
	touch(&w.v, false, true)
	stepAfter()
}

// Swap is package atomic's.
func (w *cell[T, W, P]) Swap(value T) T {
	step()
	old := P(&w.v).Swap(value)
	noteLoad(w.load())
	touch(&w.v, true, true)
	stepAfter()
	return old
}

// CompareAndSwap is package atomic's.
func (w *cell[T, W, P]) CompareAndSwap(from, to T) bool {
	step()
	isSwapped := P(&w.v).CompareAndSwap(from, to)
	noteLoad(w.load())
	touch(&w.v, true, isSwapped)
	stepAfter()
	return isSwapped
}

func (w *cell[T, W, P]) load() load {
	return load{word: unsafe.Pointer(&w.v), isNarrow: unsafe.Sizeof(w.v) == 4}
}

// adder is a value with Add.
type adder[T, W any] interface {
	value[T, W]
	Add(delta T) T
}

// number is a word W of package atomic, which holds a number T.
type number[T, W any, P adder[T, W]] struct{ cell[T, W, P] }

// Add is package atomic's.
func (w *number[T, W, P]) Add(delta T) T {
	step()
	sum := P(&w.v).Add(delta)
	touch(&w.v, false, true) // who only counts has not looked
	stepAfter()
	return sum
}

// load is a word that a task has read, and what was in it. One task runs at a time, so that no
// other one writes the word now.
type load struct {
	word     unsafe.Pointer
	isNarrow bool // it has 4 bytes instead of 8
	bits     uint64
}

//go:norace
func (l *load) read() uint64 {
	if l.isNarrow {
		return uint64(*(*uint32)(l.word))
	}
	return *(*uint64)(l.word)
}

// noteLoad notes that the running task has read a word.
//
//go:norace
func noteLoad(l load) {
	s := running
	if s == nil || s.isOver {
		return
	}
	t := s.current
	if t.loaded < len(t.loads) {
		l.bits = l.read()
		t.loads[t.loaded] = l
	}
	t.loaded++
}
