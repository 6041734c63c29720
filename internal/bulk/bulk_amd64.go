//go:build !noasm && !race

package bulk

// move copies n bytes by REP MOVSB.
//
//go:noescape
func move(dst, src *byte, n int)
