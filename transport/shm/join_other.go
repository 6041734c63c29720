//go:build !linux

package shm

import (
	"context"
	"fmt"
	"runtime"

	"github.com/goccl/goccl/transport"
)

// Join is for Linux; elsewhere it returns an error that says so.
func Join(context.Context, Job) (transport.Endpoint, error) {
	return nil, fmt.Errorf("shm: ranks as processes need Linux, and this is %s: run them as goroutines with dist.Spawn", runtime.GOOS)
}
