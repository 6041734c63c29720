// Package memory gets memory of any length, or an error where there is none: Go's own make
// ends the process then.
//
// # Model
//
// Before the runtime asks the system for a long run of memory, the package does so, in the
// same way, and gives it back at once. What the system would refuse is an error then. What it
// gives to everybody, and has not got when it is written to, is found out later, as ever.
//
// # Concurrency
//
// Its function may be called by any number of goroutines at once. Two that ask for what only
// one can get may both be told that it is there.
//
// # Failure
//
// The system's error, or that no machine has as much.
package memory

import "fmt"

// trial is from how many bytes on the system is asked first.
const trial = 1 << 20

// Bytes returns n bytes, zero at first, n >= 0, or says why the system does not give them.
// The error of a length that no machine has is like that of one that this machine lacks.
func Bytes(n int) ([]byte, error) {
	if n >= trial {
		if err := ask(n); err != nil {
			return nil, fmt.Errorf("%d bytes of memory: %w", n, err)
		}
	}
	return make([]byte, n), nil
}
