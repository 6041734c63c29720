//go:build !interleave

package underseeds

import "testing"

// run runs a program in the order of the machine.
func run(_ *testing.T, _ uint64, program func() error) error { return program() }

// picture shows nothing where no seed chooses the order.
func picture(*testing.T, uint64, bool, error, func() error) string { return "" }

// Label names the rank that the calling goroutine is.
func Label(int) {}
