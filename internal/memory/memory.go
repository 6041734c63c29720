// Package memory allocates memory of any length, and returns an error where Go's make would
// end the process because the system has too little.
//
// # Model
//
// Before a long allocation the package requests as much from the system, in the same way as
// the Go runtime, and returns it at once. A refusal is an error. Two goroutines that need
// memory that only one can get may both succeed here, and memory that the system has
// overcommitted is missing only when it is written.
package memory

import "fmt"

// trial is the length in bytes from which Bytes tries the system first.
const trial = 1 << 20

// Bytes returns n zero bytes, n >= 0, or the system's error. It may be called concurrently.
func Bytes(n int) ([]byte, error) {
	if n >= trial {
		if err := ask(n); err != nil {
			return nil, fmt.Errorf("%d bytes of memory: %w", n, err)
		}
	}
	return make([]byte, n), nil
}
