//go:build linux && (amd64 || arm64)

package mpi

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/fakempi"
	"github.com/stretchr/testify/require"
)

// A start that cannot succeed says why, and what to do. The guide to clusters has these texts.
func TestErrors(t *testing.T) {
	const (
		failed  = `initialization of "ccl" failed: `
		by      = failed + "environment: GOCCL_TRANSPORT: "
		without = by + `transport "mpi" is not available: `
	)
	openMPI := []string{"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=errors"}
	mpich := []string{"PMI_SIZE=2", "PMI_RANK=0", "MPI_LOCALNRANKS=2", "PMI_JOBID=errors"}
	const fake = "FAKE" // stands for the file of the library that fakempi builds
	const name = fake + " (Fake MPI with the standard ABI)"
	none := t.TempDir()
	for _, library := range []string{"libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1"} {
		require.NoError(t, os.WriteFile(filepath.Join(none, library), nil, 0o600)) // the loader finds it and cannot load it
	}
	for what, c := range map[string]struct {
		launcher []string
		env      []string
		says     []string
	}{
		"no launcher": {nil, nil,
			[]string{by + `transport "mpi" connects processes that an MPI launcher starts, and none started this one as one of several ranks: start the program with mpirun -n 2, mpiexec or srun`}},
		"no library of Open MPI": {openMPI, []string{"LD_LIBRARY_PATH=" + none},
			[]string{without + "Open MPI started this process, and its library cannot be loaded: " + none + "/libmpi.so.40: ", none + "/libmpi_abi.so.1: ",
				". Install it, add its directory to LD_LIBRARY_PATH, or name the library's file in GOCCL_MPI_LIBRARY"}},
		"no library of MPICH": {mpich, []string{"LD_LIBRARY_PATH=" + none},
			[]string{without + "MPICH started this process, and its library cannot be loaded: " + none + "/libmpich.so.12: ", none + "/libmpi.so.12: "}},
		"no such library": {openMPI, []string{"GOCCL_MPI_LIBRARY=/nowhere/libmpi.so"},
			[]string{without + "cannot load the MPI library /nowhere/libmpi.so: "}},
		"no MPI library": {openMPI, []string{"GOCCL_MPI_LIBRARY=libc.so.6"},
			[]string{without + "libc.so.6 is no MPI library, or one of before version 3: "}},
		"too few threads": {openMPI, []string{"GOCCL_MPI_LIBRARY=" + fake, fakempi.Size + "=2", fakempi.Level + "=1"},
			[]string{without + name + " grants MPI_THREAD_FUNNELED, and goroutines need MPI_THREAD_MULTIPLE: use a library that is built with it"}},
		"another launcher": {mpich, []string{"GOCCL_MPI_LIBRARY=" + fake},
			[]string{without + name + " counts 1 rank, and the launcher says PMI_SIZE=2: the launcher is another MPI's. ", "name the launcher's library in GOCCL_MPI_LIBRARY"}},
		"another rank": {openMPI, []string{"GOCCL_MPI_LIBRARY=" + fake, fakempi.Size + "=2", fakempi.Rank + "=1"},
			[]string{without + name + " counts this process as rank 1 of 2, but this process is rank 0 of 2 by the variables of Open MPI"}},
		// No library: the rank would start MPI to tell the others, and Open MPI's ends a process that no launcher has started.
		"another world size": {openMPI, []string{"GOCCL_WORLD_SIZE=3", "GOCCL_MPI_LIBRARY=/nowhere/libmpi.so"},
			[]string{failed + "the world size is 3 by GOCCL_WORLD_SIZE, but ", "OMPI_COMM_WORLD_SIZE=2", "; start 3 ranks, or set GOCCL_WORLD_SIZE to 2"}},
	} {
		t.Run(what, func(t *testing.T) {
			self, err := os.Executable()
			require.NoError(t, err)
			run := exec.CommandContext(t.Context(), self)
			run.Env = append(os.Environ(), partVariable+"=error", "GOCCL_TRANSPORT=mpi")
			run.Env = append(append(run.Env, c.launcher...), c.env...)
			library := ""
			if slices.Contains(c.env, "GOCCL_MPI_LIBRARY="+fake) {
				library = fakempi.Build(t, "libfake.so", fakempi.Standard)
				run.Env = append(run.Env, "GOCCL_MPI_LIBRARY="+library)
			}
			out, err := run.CombinedOutput()
			require.Error(t, err)
			for _, text := range c.says {
				require.Contains(t, string(out), strings.ReplaceAll(text, fake, library))
			}
			require.Equal(t, 1, strings.Count(string(out), "\n"), "%s", out)
		})
	}
}

// starting starts the default group.
func starting() error { return dist.InitProcessGroup("ccl") }
