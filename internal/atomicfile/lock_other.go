//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package atomicfile

import (
	"errors"
	"os"
)

// lock returns an error: files cannot be locked.
func lock(*os.File) error { return errors.ErrUnsupported }
