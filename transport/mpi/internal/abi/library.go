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
	path    string
	version string // its own words
	calls   calls
}

// calls are the addresses of the library's functions.
type calls struct {
	initThread, finalize, initialized, libraryVersion    uintptr
	commRank, commSize, commDup, commFree, setErrhandler uintptr
	isend, irecv, test, cancel, testCancelled, getCount  uintptr
	commGroup, groupIncl, groupFree, commCreateGroup     uintptr
	barrier, bcast, allreduce, reduce, scan, exscan      uintptr
	reduceScatterBlock, reduceScatter                    uintptr
	allgather, gather, scatter, alltoall                 uintptr
	allgatherv, gatherv, scatterv, alltoallv             uintptr
	errorClass, errorString                              uintptr
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
	c := &l.calls
	for name, address := range map[string]*uintptr{
		"MPI_Init_thread": &c.initThread, "MPI_Finalize": &c.finalize, "MPI_Initialized": &c.initialized, "MPI_Get_library_version": &c.libraryVersion,
		"MPI_Comm_rank": &c.commRank, "MPI_Comm_size": &c.commSize, "MPI_Comm_dup": &c.commDup, "MPI_Comm_free": &c.commFree, "MPI_Comm_set_errhandler": &c.setErrhandler,
		"MPI_Isend": &c.isend, "MPI_Irecv": &c.irecv, "MPI_Test": &c.test, "MPI_Cancel": &c.cancel, "MPI_Test_cancelled": &c.testCancelled, "MPI_Get_count": &c.getCount,
		"MPI_Comm_group": &c.commGroup, "MPI_Group_incl": &c.groupIncl, "MPI_Group_free": &c.groupFree, "MPI_Comm_create_group": &c.commCreateGroup,
		"MPI_Barrier": &c.barrier, "MPI_Bcast": &c.bcast, "MPI_Allreduce": &c.allreduce, "MPI_Reduce": &c.reduce, "MPI_Scan": &c.scan, "MPI_Exscan": &c.exscan,
		"MPI_Reduce_scatter_block": &c.reduceScatterBlock, "MPI_Reduce_scatter": &c.reduceScatter,
		"MPI_Allgather": &c.allgather, "MPI_Gather": &c.gather, "MPI_Scatter": &c.scatter, "MPI_Alltoall": &c.alltoall,
		"MPI_Allgatherv": &c.allgatherv, "MPI_Gatherv": &c.gatherv, "MPI_Scatterv": &c.scatterv, "MPI_Alltoallv": &c.alltoallv,
		"MPI_Error_class": &c.errorClass, "MPI_Error_string": &c.errorString,
	} {
		var err error
		if *address, err = symbol(name); err != nil {
			return nil, notAvailable("%s is no MPI library, or one of before version 3: %v", path, err)
		}
	}
	text := make([]byte, 8192) // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest
	var n int32
	escape(&text[0])
	escape(&n)
	if code := call(c.libraryVersion, address(&text[0]), address(&n)); code != success {
		return nil, notAvailable("%s does not tell its version", path)
	}
	l.version = string(text[:max(0, min(int(n), len(text)))])
	l.version, _, _ = strings.Cut(strings.TrimRight(l.version, "\x00\n"), "\n")
	l.version, _, _ = strings.Cut(l.version, ", package:")
	l.version = strings.Join(strings.Fields(l.version), " ") // MPICH's has a tab
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

// call calls a function of the library that returns an int. Arguments that are listed are allocated; calls that are made
// often pass a slice that they keep.
func call(function uintptr, args ...uintptr) int32 {
	code, _, _ := purego.SyscallN(function, args...)
	return int32(code)
}

// number converts an int for a call.
func number(n int) uintptr { return uintptr(n) }

// check returns the error of a call.
func (l *library) check(function string, code int32) error {
	if code == success {
		return nil
	}
	e := &Error{Function: function, Code: int(code)}
	text := make([]byte, 512) // MPI_MAX_ERROR_STRING of MPICH, the longest
	var n, class int32
	escape(&text[0])
	escape(&n)
	escape(&class)
	if call(l.calls.errorClass, number(int(code)), address(&class)) == success {
		e.Class = int(class)
	}
	if call(l.calls.errorString, number(int(code)), address(&text[0]), address(&n)) == success {
		e.Text = strings.TrimSpace(string(text[:max(0, min(int(n), len(text)))]))
	}
	return e
}
