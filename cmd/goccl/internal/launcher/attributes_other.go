//go:build unix && !linux

package launcher

import "syscall"

// rankAttributes put a rank into its own process group.
func rankAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adoptOrphans does nothing: orphans become children of process 1.
func adoptOrphans() error { return nil }
