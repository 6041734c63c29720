//go:build !linux

package shm

// Leftovers returns none, because only Linux has segments.
func Leftovers() ([]Leftover, error) { return nil, nil }

// RemoveLeftovers does nothing.
func RemoveLeftovers(prefix string) error { return nil }

// Remove does nothing.
func (l Leftover) Remove() error { return nil }
