//go:build !amd64 || noasm || race

package shm

import "unsafe"

// moveBulk copies n bytes.
func moveBulk(dst, src *byte, n int) { copy(unsafe.Slice(dst, n), unsafe.Slice(src, n)) }
