// Package memmove copies memory to where other cores have read before.
//
// # Model
//
// A store to a cache line that another core has read asks for the line first, one line
// after the other. The string instructions of amd64 ask for many at once, but take
// some time to begin. On other machines, under the race detector and with the build
// tag noasm, a copy is a copy.
//
// # Concurrency
//
// As the built-in copy: nothing else writes dst or src meanwhile.
//
// # Failure
//
// Nothing here fails, but for what copy fails of: memory that is not there.
package memmove

// Copy copies src to dst, which is at least as long; they do not overlap.
func Copy(dst, src []byte) {
	if len(src) < least {
		copy(dst, src)
		return
	}
	_ = dst[:len(src)]
	move(&dst[0], &src[0], len(src))
}

// least is from how many bytes on string instructions are faster: 5 to 6 KiB for REP
// MOVSB on AMD's Zen 5.
const least = 6 << 10
