//go:build unix && !linux

package launcher

import "syscall"

// rankAttributes put a rank into its own process group.
func rankAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// keepAttributes does nothing: process groups belong to processes.
func keepAttributes() error { return nil }

// yieldMemory does nothing: only Linux can be told which process to end where memory runs out.
func yieldMemory() {}
