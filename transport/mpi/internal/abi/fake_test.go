//go:build linux && (amd64 || arm64)

package abi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/goccl/goccl/test/fakempi"
	"github.com/stretchr/testify/require"
)

// alone runs a part in a process that Open MPI's launcher has started as the only rank, and returns what it prints.
func alone(t *testing.T, part string, env ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(append(os.Environ(), partVariable+"="+part, "OMPI_COMM_WORLD_SIZE=1"), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

// All calls pass with the constants of ABIs of which no library is installed.
func TestFake(t *testing.T) {
	for name, abi := range map[string]fakempi.ABI{"standard": fakempi.Standard, "Open MPI 5": fakempi.OpenMPI5, "Open MPI 6": fakempi.OpenMPI6} {
		t.Run(name, func(t *testing.T) {
			library := pathVariable + "=" + fakempi.Build(t, "libfake.so", abi)
			for _, part := range []string{"life", "calls"} {
				out, err := alone(t, part, library)
				require.NoError(t, err, "%s", out)
				require.Equal(t, "passed\n", out)
			}
		})
	}
}

// Without the library of the launcher's family, that of the standard ABI is loaded.
func TestStandardName(t *testing.T) {
	file := fakempi.Build(t, standardName, fakempi.Standard)
	dir := filepath.Dir(file)
	for _, names := range sonames {
		for _, name := range names {
			if name != standardName {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600)) // the loader finds it and cannot load it
			}
		}
	}
	for _, launcher := range [][]string{nil, {"OMPI_COMM_WORLD_SIZE=", "PMI_RANK=0", "PMI_SIZE=1"}} {
		out, err := alone(t, "calls", append(launcher, "LD_LIBRARY_PATH="+dir)...)
		require.NoError(t, err, "%s", out)
		out, err = alone(t, "says", append(launcher, "LD_LIBRARY_PATH="+dir)...)
		require.NoError(t, err)
		require.Equal(t, standardName+" (Fake MPI with the standard ABI)\n", out)
	}
}

// What a library lacks, or does not fit, is said with its name and version.
func TestUnfit(t *testing.T) {
	for _, c := range []struct {
		abi  fakempi.ABI
		env  []string
		says string
	}{
		{fakempi.Standard, []string{fakempi.Level + "=0"}, "%s (Fake MPI with the standard ABI) grants MPI_THREAD_SINGLE, and goroutines need MPI_THREAD_MULTIPLE: use a library that is built with it"},
		{fakempi.Standard, []string{fakempi.Level + "=2"}, "%s (Fake MPI with the standard ABI) grants MPI_THREAD_SERIALIZED, and goroutines need MPI_THREAD_MULTIPLE: use a library that is built with it"},
		{fakempi.OpenMPI5, []string{fakempi.Level + "=1"}, "%s (Open MPI v5.0.9) grants MPI_THREAD_FUNNELED, and goroutines need MPI_THREAD_MULTIPLE: use a library that is built with it"},
		{fakempi.OpenMPI5, []string{fakempi.Size + "=3"}, "%s (Open MPI v5.0.9) counts 3 ranks, and the launcher says OMPI_COMM_WORLD_SIZE=1: the launcher is another MPI's. " +
			"Start the program with the launcher of that library, or name the launcher's library in GOCCL_MPI_LIBRARY"},
		{fakempi.Standard, []string{fakempi.Major + "=2"}, "%s (Fake MPI with the standard ABI) has another binary interface: it is version 2.0 of the standard one, of which version 1 is known"},
		{fakempi.Standard, []string{fakempi.Major + "=-1"}, "%s (Fake MPI with the standard ABI) has another binary interface: it is neither Open MPI's nor MPICH's nor the standard one"},
	} {
		library := fakempi.Build(t, "libfake.so", c.abi)
		out, err := alone(t, "says", append(c.env, pathVariable+"="+library)...)
		require.NoError(t, err)
		require.Equal(t, "transport \"mpi\" is not available: "+fmt.Sprintf(c.says, library)+"\n", out)
	}
}

// says prints the library, or why there is none.
func says() error {
	w, err := initialise("")
	if err != nil {
		fmt.Println(err)
		return nil
	}
	fmt.Println(w.Library)
	return finalise()
}
