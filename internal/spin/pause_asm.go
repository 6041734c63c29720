//go:build (amd64 || arm64) && !noasm

package spin

// Pause tells the processor that it runs in a polling loop: PAUSE on amd64,
// YIELD on arm64. It takes some ten nanoseconds and does nothing else.
//
//go:noescape
func Pause()
