//go:build !amd64 || noasm || race

package reduce

import "unsafe"

// supported lists one implementation: there is no assembly for this machine, or
// it is not wanted. The race detector does not see what assembly reads and writes,
// so that under it everything is folded in Go.
var supported = []implementation{plain}

// fold leaves everything to the Go loops.
func (implementation) fold(_ Type, _ Op, _, _ []unsafe.Pointer, _, _, _ int, _ bool) (done int) {
	return 0
}
