//go:build !interleave

package interleave

import (
	"sync"
	"sync/atomic"
)

// Words that several goroutines read and write.
type (
	Bool   = atomic.Bool
	Int32  = atomic.Int32
	Int64  = atomic.Int64
	Uint32 = atomic.Uint32
	Uint64 = atomic.Uint64
)

// Pointer is a pointer that several goroutines read and write.
type Pointer[T any] = atomic.Pointer[T]

// Locks.
type (
	Cond      = sync.Cond
	Locker    = sync.Locker
	Mutex     = sync.Mutex
	Once      = sync.Once
	RWMutex   = sync.RWMutex
	WaitGroup = sync.WaitGroup
)

// The compiler exports the bodies of methods of another package, for inlining, if it has inlined
// them here. Packages that import this one would otherwise call them.
var _ = func() {
	var (
		b   Bool
		i32 Int32
		i64 Int64
		u32 Uint32
		u64 Uint64
	)
	b.Store(b.Load() || b.Swap(true) || b.CompareAndSwap(false, true))
	i32.Store(i32.Load() + i32.Swap(0) + i32.Add(1))
	i64.Store(i64.Load() + i64.Swap(0) + i64.Add(1))
	u32.Store(u32.Load() + u32.Swap(0) + u32.Add(1))
	u64.Store(u64.Load() + u64.Swap(0) + u64.Add(1))
	b.Store(i32.CompareAndSwap(0, 1) || i64.CompareAndSwap(0, 1) || u32.CompareAndSwap(0, 1) || u64.CompareAndSwap(0, 1))

	var mu Mutex
	mu.Lock()
	b.Store(true)
	mu.Unlock()
	var rw RWMutex
	rw.Lock()
	b.Store(true)
	rw.Unlock()
	rw.RLock()
	b.Store(true)
	rw.RUnlock()
	var once Once
	once.Do(func() {})
}
