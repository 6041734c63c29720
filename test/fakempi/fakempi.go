package fakempi

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An ABI is a binary interface of MPI.
type ABI []string // macros of the source

// What a library may have.
var (
	Standard = ABI{"STANDARD"}
	OpenMPI5 = ABI{"OPEN_MPI"}
	OpenMPI6 = ABI{"STANDARD", "OPEN_MPI"} // its libmpi_abi.so, behind which its own variables are visible
)

// Variables of processes that load the library.
const (
	Level = "FAKE_MPI_LEVEL" // the thread level that it grants at most, 0 to 3
	Rank  = "FAKE_MPI_RANK"  // this process's rank in the world; 0 without
	Size  = "FAKE_MPI_SIZE"  // the ranks in the world; 1 without
	Major = "FAKE_MPI_ABI"   // the version of the standard ABI; 1 without
)

//go:embed testdata/fakempi.c
var source []byte

// Build builds the library as a file of that name in a new directory, and returns its path. Without
// a C compiler it skips the test, or fails it where TEST_GOCCL_MPI is "required".
func Build(t *testing.T, name string, abi ABI) string {
	t.Helper()
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		const why = "a library that stands in for others is built by gcc, and gcc is not in PATH"
		if os.Getenv("TEST_GOCCL_MPI") == "required" {
			t.Fatal(why)
		}
		t.Skip(why)
	}

	dir := t.TempDir()
	c, file := filepath.Join(dir, "fakempi.c"), filepath.Join(dir, name)
	if err := os.WriteFile(c, source, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-shared", "-fPIC", "-pthread", "-Wall", "-Werror", "-o", file, c}
	for _, macro := range abi {
		args = append(args, "-D"+macro)
	}

	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, out)
	}
	return file
}
