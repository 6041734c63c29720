// Package memory allocates memory of any length. It returns an error where Go's make would end
// the process because the system has too little memory.
//
// # Model
//
// Before a long allocation the package maps the same amount of memory, as the Go runtime would,
// and unmaps it at once. If the system refuses, the package returns an error.
//
// The check is not exact. Two goroutines may both pass it although only one of them can get the
// memory. If the system overcommits memory, a shortage shows only when the memory is written.
//
// A [Scratch] is memory for a caller that needs some again and again.
package memory

import "fmt"

// trial is the length in bytes from which Bytes checks with the system first.
const trial = 1 << 20

// Bytes returns n zero bytes, or the system's error. n must not be negative. Bytes may be called
// concurrently.
func Bytes(n int) ([]byte, error) {
	if n >= trial {
		if err := ask(n); err != nil {
			return nil, fmt.Errorf("%d bytes of memory: %w", n, err)
		}
	}
	return make([]byte, n), nil
}
