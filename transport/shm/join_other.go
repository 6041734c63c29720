//go:build !linux

package shm

import (
	"context"
	"runtime"

	"github.com/goccl/goccl/transport"
)

// available returns an error: processes share memory on Linux alone.
func available() error {
	return &transport.NotAvailableError{
		Transport: Name,
		Reason:    "ranks as processes need Linux, and this is " + runtime.GOOS + ": run them as goroutines with dist.Spawn",
	}
}

// Join needs Linux. On other systems it fails; errors.As finds *transport.NotAvailableError.
func Join(context.Context, Job) (transport.Endpoint, error) { return nil, available() }
