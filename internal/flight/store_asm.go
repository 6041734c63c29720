//go:build (amd64 || arm64) && !noasm

package flight

// put stores next to r: first the head with the state writing, then the other words, then next's
// head. Other cores see the stores in this order.
//
//go:noescape
func put(r, next *record)
