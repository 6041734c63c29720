//go:build linux && !interleave

package shm

import "golang.org/x/sys/unix"

// noteProcess notes that this process has joined a segment, for the processes that a seed
// simulates. There are none.
func noteProcess(*segment) {}

// lacks returns the error of a system call for which the process has not enough of something. A
// seed chooses which fail so.
func lacks(unix.Errno) error { return nil }

func (a arena) forbid() error { return nil }

func (a arena) isForbidden() bool { return false }
