package memory

import (
	"errors"
	"syscall"
)

// errMore rejects a length beyond the machine's memory and swap space.
var errMore = errors.New("more than this machine has")

// ask returns an error if the system refuses n bytes.
func ask(n int) error {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil && uint64(n)/uint64(max(info.Unit, 1)) > uint64(info.Totalram)+uint64(info.Totalswap) { //nolint:unconvert // the fields have 32 bits on other architectures
		return errMore
	}
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return syscall.Munmap(b)
}
