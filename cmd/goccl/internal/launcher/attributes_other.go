//go:build unix && !linux

package launcher

import "syscall"

// rankAttributes put a rank into a process group of its own.
func rankAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adoptOrphans does nothing: orphans are process 1's here.
func adoptOrphans() error { return nil }
