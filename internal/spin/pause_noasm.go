//go:build !(amd64 || arm64) || noasm

package spin

// Pause does nothing, at the cost of a call.
//
//go:noinline
func Pause() {}
