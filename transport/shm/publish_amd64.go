//go:build !noasm && !race

package shm

// moveBulk copies n bytes by REP MOVSB.
//
//go:noescape
func moveBulk(dst, src *byte, n int)
