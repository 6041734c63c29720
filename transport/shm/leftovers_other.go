//go:build !linux

package shm

// Leftovers returns none: only Linux has segments.
func Leftovers() ([]Leftover, error) { return nil, nil }

// RemoveLeftovers has nothing to remove.
func RemoveLeftovers(prefix string) error { return nil }

// Remove has nothing to remove.
func (l Leftover) Remove() error { return nil }
