//go:build unix && !linux

package launcher

import (
	"errors"
	"fmt"
	"runtime"
)

func usableCores() ([]int, error) {
	return nil, fmt.Errorf("pinning ranks to cores: %w on %s, which has no call for it", errors.ErrUnsupported, runtime.GOOS)
}

func useCores([]int) error { return errors.ErrUnsupported }
