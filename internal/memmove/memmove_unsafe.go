//go:build !amd64 || noasm || race

package memmove

import "unsafe"

// move copies n bytes.
func move(dst, src *byte, n int) { copy(unsafe.Slice(dst, n), unsafe.Slice(src, n)) }
