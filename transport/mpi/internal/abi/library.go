//go:build linux && (amd64 || arm64)

package abi

import (
	"fmt"
	"os"
	"strings"

	"github.com/ebitengine/purego"
)

// library is a loaded MPI library with all of its symbols that this package calls.
type library struct {
	constants
	path      string
	version   string    // in its words
	addresses []uintptr // by function
}

// sonames are the names under which the libraries of a family are installed.
//
// The library of the family's own ABI comes first: all processes of a job need the same one.
var sonames = map[Family][]string{
	OpenMPI: {"libmpi.so.40", standardName},
	MPICH:   {"libmpich.so.12", "libmpi.so.12", standardName},
}

// standardName is the name of a library that has the standard ABI, of any MPI.
const standardName = "libmpi_abi.so.1"

// load loads the library of that path, or if it is "" the one of the family.
func load(path string, family Family) (*library, error) {
	quietUCX()
	names := sonames[family]
	if path != "" {
		names = []string{path}
	}
	var why []string
	for _, name := range names {
		// Plugins of the library find its symbols only if these are global.
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			why = append(why, err.Error())
			continue
		}
		return resolve(name, func(symbol string) (uintptr, error) { return purego.Dlsym(handle, symbol) })
	}
	if path != "" {
		return nil, notAvailable("cannot load the MPI library %s: %s", path, strings.Join(why, "; "))
	}
	return nil, notAvailable("%v started this process, and its library cannot be loaded: %s. Install it, add its directory to LD_LIBRARY_PATH, or name the library's file in GOCCL_MPI_LIBRARY",
		family, strings.Join(why, "; "))
}

// quietUCX leaves signals to the Go runtime. UCX reads the variable when it is loaded.
func quietUCX() {
	if _, chosen := os.LookupEnv("UCX_ERROR_SIGNALS"); !chosen && os.Getenv("UCX_HANDLE_ERRORS") == "" {
		_ = os.Setenv("UCX_ERROR_SIGNALS", "") // it fails for invalid names alone
	}
}

// resolve finds all symbols, and the constants of the library's family.
func resolve(path string, symbol func(name string) (uintptr, error)) (*library, error) {
	l := &library{path: path, constants: mpich}
	for _, name := range functionNames {
		address, err := symbol(name)
		if err != nil {
			return nil, notAvailable("%s is no MPI library, or one of before version 3: %v", path, err)
		}
		l.addresses = append(l.addresses, address)
	}
	if err := l.readVersion(); err != nil {
		return nil, err
	}

	isOfStandard, err := isStandard(symbol)
	switch _, isOpen := symbol("ompi_mpi_comm_world"); {
	case err != nil:
	case isOfStandard:
		l.constants = standard
	case isOpen == nil:
		l.constants, err = openMPI(symbol)
	case !isMPICH(l.version):
		err = fmt.Errorf("it is neither Open MPI's nor MPICH's nor the standard one")
	}

	if err != nil {
		return nil, notAvailable("%s (%s) has another binary interface: %v", path, l.version, err)
	}
	return l, nil
}

// readVersion asks the library for its version, and stores the first line of it.
func (l *library) readVersion() error {
	text := make([]byte, 8192) // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest
	var n int32
	escape(&text[0])
	escape(&n)
	if code := l.invoke(mpiGetLibraryVersion, address(&text[0]), address(&n)); code != success {
		return notAvailable("%s does not tell its version", l.path)
	}
	l.version = string(text[:max(0, min(int(n), len(text)))])
	l.version, _, _ = strings.Cut(strings.TrimRight(l.version, "\x00\n"), "\n")
	l.version, _, _ = strings.Cut(l.version, ", package:")
	l.version = strings.Join(strings.Fields(l.version), " ") // MPICH's has a tab
	return nil
}

// isMPICH reports whether a library of that version has MPICH's binary interface.
func isMPICH(version string) bool {
	for _, name := range []string{"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"} {
		if strings.HasPrefix(version, name) {
			return true
		}
	}
	return false
}

// String names the library and its version.
func (l *library) String() string { return fmt.Sprintf("%s (%s)", l.path, l.version) }

// check returns the error of a function that has returned code.
func (l *library) check(f function, code int32) error {
	if code == success {
		return nil
	}
	e := &Error{Function: functionNames[f], Code: int(code)}
	text := make([]byte, 512) // MPI_MAX_ERROR_STRING of MPICH, the longest
	var n, class int32
	escape(&text[0])
	escape(&n)
	escape(&class)
	if l.invoke(mpiErrorClass, number(int(code)), address(&class)) == success {
		e.Class = int(class)
	}
	if l.invoke(mpiErrorString, number(int(code)), address(&text[0]), address(&n)) == success {
		e.Text = strings.TrimSpace(string(text[:max(0, min(int(n), len(text)))]))
	}
	return e
}
