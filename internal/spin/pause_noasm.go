//go:build !(amd64 || arm64) || noasm

package spin

// Pause does nothing. It costs one call.
//
//go:noinline
func Pause() {}
