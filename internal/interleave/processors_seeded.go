//go:build interleave

package interleave

import "runtime"

// IsOn reports whether the build tag interleave is set.
const IsOn = true

// LookEvery is how many turns a polling loop makes from one look at other words to the next.
const LookEvery = 3

// Chunk is how many bytes a rank reduces or copies from one look at the group to the next.
const Chunk = 64

// Fact returns a constant instead of what measure would find out about this machine.
func Fact[T any](_ func() T, constant T) T { return constant }

// processors is what Processors returns in a Run.
var processors = 4

// SetProcessors sets how many goroutines seem to run at the same time.
func SetProcessors(n int) { processors = n }

// Processors returns how many goroutines run at the same time.
func Processors() int {
	if !isOn() {
		return min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	}
	return processors
}
