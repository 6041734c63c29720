//go:build unix && !linux && !solaris && !aix

package memory

import "syscall"

// ask returns an error if the system refuses n bytes.
func ask(n int) error {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return syscall.Munmap(b)
}
