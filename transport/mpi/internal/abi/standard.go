//go:build linux && (amd64 || arm64)

package abi

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// standardVersion is the major version of the standard ABI that this package knows, that of MPI
// 5.0.
const standardVersion = 1

// isStandard reports whether a library has the standard ABI. A library with another ABI may have
// MPI_Abi_get_version too, and then says -1. One with the standard ABI may also show the variables
// of the MPI that it belongs to.
func isStandard(symbol func(name string) (uintptr, error)) (bool, error) {
	version, err := symbol("MPI_Abi_get_version")
	if err != nil {
		return false, nil // of before MPI 5.0
	}
	var major, minor int32
	escape(&major)
	escape(&minor)
	if code, _, _ := purego.SyscallN(version, address(&major), address(&minor)); int32(code) != success || major < 0 {
		return false, nil
	}
	if major != standardVersion {
		return false, fmt.Errorf("it is version %d.%d of the standard one, of which version %d is known", major, minor, standardVersion)
	}
	return true, nil
}
