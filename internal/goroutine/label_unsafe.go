package goroutine

import "unsafe"

// Label is the identity of a set of profiler labels. The zero Label is that of
// goroutines without labels. Two Labels are equal if one goroutine inherited
// the set from the other, or both from a third. A Label keeps its set from being
// reused for another, so that equality means that for as long as it is held.
type Label struct{ set unsafe.Pointer }

// CurrentLabel returns the Label of the calling goroutine.
func CurrentLabel() Label { return Label{getProfLabel()} }

// getProfLabel returns a pointer to the goroutine's labels. The runtime keeps
// the name and signature for users outside of it, of which it lists one.
//
//go:linkname getProfLabel runtime/pprof.runtime_getProfLabel
func getProfLabel() unsafe.Pointer
