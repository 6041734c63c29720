//go:build !amd64 || noasm || race

package reduce

import "unsafe"

// supported lists one implementation: this machine has no assembly, or the build excludes
// it. The race detector does not see accesses by assembly, so under it Go reduces everything.
var supported = []implementation{plain}

// reduce leaves everything to the Go loops.
func (implementation) reduce(_ Type, _ Op, _, _ []unsafe.Pointer, _, _, _ int, _ bool) (done int) {
	return 0
}

func (implementation) widen(_, _ unsafe.Pointer, _ int) (done int)  { return 0 }
func (implementation) narrow(_, _ unsafe.Pointer, _ int) (done int) { return 0 }
