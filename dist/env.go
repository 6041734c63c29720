package dist

import (
	"fmt"
	"os"
	"strconv"
)

// launchers are those whose environment says how many processes they started:
// size holds the number, and with are variables that have to be there as well,
// so that neither a stray WORLD_SIZE nor the shell of a batch job (which has
// SLURM_NTASKS, but is one process) is taken for one of them.
var launchers = []struct {
	size string
	with []string
}{
	{"GOCCL_SHM_SIZE", []string{"GOCCL_SHM_NAME", "GOCCL_SHM_RANK"}},
	{"WORLD_SIZE", []string{"RANK", "MASTER_ADDR"}}, // torchrun
	{"OMPI_COMM_WORLD_SIZE", []string{"OMPI_COMM_WORLD_RANK"}},
	{"PMI_SIZE", []string{"PMI_RANK"}},
	{"SLURM_STEP_NUM_TASKS", []string{"SLURM_STEP_ID", "SLURM_PROCID"}},
}

// launched returns *BackendNotAvailableError if this process is one of several
// that a launcher started as ranks: each of them would take itself for the
// whole job.
func launched() error {
	for _, l := range launchers {
		n, err := strconv.Atoi(os.Getenv(l.size))
		if err != nil || n < 2 || !allSet(l.with) {
			continue
		}
		return &BackendNotAvailableError{
			Requested: "shm",
			Available: []string{"local"},
			Reason: fmt.Sprintf("%s=%d says that a launcher started this process as one rank of %d, "+
				"and ranks as processes are not available yet in this version: "+
				"start one process, whose ranks are goroutines: dist.Spawn(worker, dist.Ranks(%d))",
				l.size, n, n, n),
		}
	}
	return nil
}

func allSet(variables []string) bool {
	for _, v := range variables {
		if os.Getenv(v) == "" {
			return false
		}
	}
	return true
}
