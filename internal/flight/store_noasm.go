//go:build !(amd64 || arm64) || noasm

package flight

import "sync/atomic"

// put stores next to r: first the head with the state writing, then the other words, then next's
// head. Other cores see the stores in this order.
func put(r, next *record) {
	atomic.StoreUint64(&r[headWord], next[headWord]|writing)
	for i := 1; i < len(next); i++ {
		atomic.StoreUint64(&r[i], next[i])
	}
	atomic.StoreUint64(&r[headWord], next[headWord])
}
