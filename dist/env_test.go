package dist_test

import (
	"context"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/require"
)

// A process that is one of several ranks would take itself for the whole job.
func TestLauncher(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		size string // the variable that tells; "": none does
	}{
		"ours":                       {map[string]string{"GOCCL_SHM_NAME": "/job", "GOCCL_SHM_RANK": "1", "GOCCL_SHM_SIZE": "4"}, "GOCCL_SHM_SIZE"},
		"torchrun":                   {map[string]string{"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}, "WORLD_SIZE"},
		"Open MPI":                   {map[string]string{"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, "OMPI_COMM_WORLD_SIZE"},
		"PMI":                        {map[string]string{"PMI_RANK": "3", "PMI_SIZE": "4"}, "PMI_SIZE"},
		"srun":                       {map[string]string{"SLURM_STEP_ID": "0", "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4"}, "SLURM_STEP_NUM_TASKS"},
		"the shell of sbatch":        {map[string]string{"SLURM_JOB_ID": "17", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_NPROCS": "4"}, ""},
		"mpirun -n 1":                {map[string]string{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, ""},
		"a stray WORLD_SIZE":         {map[string]string{"WORLD_SIZE": "4"}, ""},
		"a size that is not one":     {map[string]string{"PMI_RANK": "0", "PMI_SIZE": "many"}, ""},
		"our variables, but no name": {map[string]string{"GOCCL_SHM_RANK": "1", "GOCCL_SHM_SIZE": "4"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			nothing := func(context.Context, int) error { return nil }
			spawnErr := dist.Spawn(nothing, dist.Ranks(2))
			initErr := dist.InitProcessGroup("ccl")
			if c.size == "" {
				require.NoError(t, spawnErr)
				require.NoError(t, initErr)
				require.NoError(t, dist.DestroyProcessGroup())
				return
			}
			text := `transport "shm" is not available: ` + c.size + `=4 says that a launcher started this process as one rank of 4, ` +
				`and ranks as processes are not available yet in this version: start one process, whose ranks are goroutines: ` +
				`dist.Spawn(worker, dist.Ranks(4)) (available: local)`
			require.EqualError(t, spawnErr, text)
			require.EqualError(t, initErr, `initialization of "ccl" failed: `+text)
			var unavailable *dist.BackendNotAvailableError
			require.ErrorAs(t, spawnErr, &unavailable)
			require.ErrorAs(t, initErr, &unavailable)
			require.False(t, dist.IsInitialized())
		})
	}
}
