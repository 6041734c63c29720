//go:build !interleave

package underseeds

import "testing"

// run runs a program in the order of the machine.
func run(_ *testing.T, _ uint64, program func() error) error { return program() }

// Label names the rank that the calling goroutine is.
func Label(int) {}
