// Package memmove copies to memory that other cores have read before.
//
// # Model
//
// A store to a cache line that another core has read must request the line first. Ordinary
// stores request one line after the other. The string instructions of amd64 request many lines
// at once, but take longer to start. On other architectures, under the race detector and with
// the build tag noasm, Copy is the built-in copy.
package memmove

// Copy copies src to dst. Preconditions:
//   - dst is at least as long as src;
//   - dst and src do not overlap.
func Copy(dst, src []byte) {
	if len(src) < least {
		copy(dst, src)
		return
	}
	_ = dst[:len(src)]
	move(&dst[0], &src[0], len(src))
}

// least is the length in bytes from which string instructions are faster: 5 to 6 KiB for
// REP MOVSB on AMD's Zen 5.
const least = 6 << 10
