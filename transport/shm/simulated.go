//go:build linux && !interleave

package shm

// noteProcess notes that this process has joined a segment, for the processes that a seed
// simulates. There are none.
func noteProcess(*segment) {}

func (a arena) forbid() error { return nil }

func (a arena) isForbidden() bool { return false }
