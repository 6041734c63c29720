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

// LoadUint64 loads a word of memory that is no Uint64.
func LoadUint64(word *uint64) uint64 { return atomic.LoadUint64(word) }

// StoreUint64 stores a word of memory that is no Uint64.
func StoreUint64(word *uint64, value uint64) { atomic.StoreUint64(word, value) }
