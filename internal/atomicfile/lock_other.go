//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package atomicfile

import (
	"errors"
	"os"
)

// regularOnly is no flag: without locks no temporary file is removed.
const regularOnly = 0

// lock returns an error: files cannot be locked.
func lock(*os.File) error { return errors.ErrUnsupported }
