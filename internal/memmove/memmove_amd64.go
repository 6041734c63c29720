//go:build !noasm && !race

package memmove

// move copies n bytes by REP MOVSB.
//
//go:noescape
func move(dst, src *byte, n int)
