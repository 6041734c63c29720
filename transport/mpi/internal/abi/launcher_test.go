package abi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
)

func TestLaunched(t *testing.T) {
	for name, c := range map[string]struct {
		set  map[string]string
		want Launcher
	}{
		"mpirun of Open MPI": {map[string]string{"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1", "PMIX_RANK": "1"}, Launcher{OpenMPI, 4, "OMPI_COMM_WORLD_SIZE=4"}},
		"mpiexec of MPICH":   {map[string]string{"PMI_SIZE": "3", "PMI_RANK": "0"}, Launcher{MPICH, 3, "PMI_SIZE=3"}},
		"srun --mpi=pmi2":    {map[string]string{"PMI_SIZE": "3", "PMI_RANK": "0", "SLURM_STEP_NUM_TASKS": "3"}, Launcher{MPICH, 3, "PMI_SIZE=3"}},
		"srun --mpi=pmix":    {map[string]string{"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "8"}, Launcher{OpenMPI, 8, "SLURM_STEP_NUM_TASKS=8"}},
	} {
		got, err := Launched(func(name string) string { return c.set[name] })
		require.NoError(t, err, name)
		require.Equal(t, c.want, *got, name)
	}
	_, err := Launched(func(string) string { return "" })
	var missing *transport.MissingConfigurationError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"}, missing.Missing)
	_, err = Launched(func(name string) string { return map[string]string{"PMI_SIZE": "many", "PMI_RANK": "0"}[name] })
	require.EqualError(t, err, "PMI_SIZE=many: the launcher's variable should be a number from 1 on")
}

// What a library may be lacking is said with its name.
func TestChecks(t *testing.T) {
	for i, name := range []string{"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED"} {
		for _, l := range []levels{mpich.levels, standard.levels} {
			require.NoError(t, l.check(l.multiple(), "libmpi.so.40"))
			require.EqualError(t, l.check(l[i], "libmpi.so.40"), `transport "mpi" is not available: libmpi.so.40 grants `+name+`, `+
				"and goroutines need MPI_THREAD_MULTIPLE: use a library that is built with it")
		}
	}
	l := &Launcher{MPICH, 4, "PMI_SIZE=4"}
	require.NoError(t, checkSize(4, l, "libmpi.so.40"))
	require.EqualError(t, checkSize(1, l, "libmpi.so.40"), `transport "mpi" is not available: libmpi.so.40 counts 1 rank, and the launcher says PMI_SIZE=4: `+
		"the launcher is another MPI's. Start the program with the launcher of that library, or name the launcher's library in GOCCL_MPI_LIBRARY")
}
