//go:build !interleave

package interleave

import "time"

// IsSeeded reports whether a seed orders the calling goroutine.
func IsSeeded() bool { return false }

// FutexWait and FutexWake are the system call of processes that a seed simulates.
func FutexWait(*Uint32, uint32, uint64, time.Duration) {}
func FutexWake(uint64)                                 {}
