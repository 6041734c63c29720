package shm

// publish copies src to dst, memory that peers have read. A store to a cache line that
// a peer has read asks for it first, one line after the other; the string instructions
// of amd64 ask in bulk. They take some time to begin.
func publish(dst, src []byte) {
	if len(src) < bulkBytes {
		copy(dst, src)
		return
	}
	_ = dst[:len(src)]
	moveBulk(&dst[0], &src[0], len(src))
}

// bulkBytes is from where on string instructions are faster, in bytes. For
// REP MOVSB on AMD's Zen 5 that is 5 to 6 KiB.
const bulkBytes = 6 << 10
