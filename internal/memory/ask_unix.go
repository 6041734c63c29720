//go:build unix && !linux && !solaris && !aix

package memory

import "syscall"

// ask is an error if the system would not give n bytes. What it gives it may still not have
// when they are written.
func ask(n int) error {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return syscall.Munmap(b)
}
