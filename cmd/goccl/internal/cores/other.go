//go:build !linux

package cores

import (
	"errors"
	"fmt"
	"runtime"
)

// Usable returns an error that wraps errors.ErrUnsupported.
func Usable() ([]int, error) {
	return nil, fmt.Errorf("pinning ranks to cores: %w on %s, which has no call for it", errors.ErrUnsupported, runtime.GOOS)
}

// Use returns errors.ErrUnsupported.
func Use([]int) error { return errors.ErrUnsupported }

func take(string) (l lock, held bool) { return noLock, false }

func (lock) release() {}
