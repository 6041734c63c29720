package goroutine

import "unsafe"

// Label is the identity of a set of profiler labels. The zero Label belongs to
// goroutines without labels. Two Labels are equal if one goroutine inherited
// the set from the other, or both from a third. Holding a Label keeps its set from being
// garbage-collected and reused.
type Label struct{ set unsafe.Pointer }

// CurrentLabel returns the Label of the calling goroutine.
func CurrentLabel() Label { return Label{getProfLabel()} }

// getProfLabel returns a pointer to the goroutine's labels. The runtime keeps its name
// and signature for linkname users outside the standard library.
//
//go:linkname getProfLabel runtime/pprof.runtime_getProfLabel
func getProfLabel() unsafe.Pointer
