//go:build (amd64 || arm64) && !noasm

package spin

// Pause tells the processor that it runs a polling loop, by PAUSE on amd64 and YIELD on arm64.
// It takes about 10 ns and has no other effect.
//
//go:noescape
func Pause()
