package launch

import (
	"fmt"
	"slices"
	"strings"
)

// contradicting are the beginnings of variables by which other launchers say which
// rank a process is, and of how many. Of Slurm's, those about the job, which name its
// directories and resources, stay.
var contradicting = []string{
	"GOCCL_SHM_",
	"RANK=", "WORLD_SIZE=", "LOCAL_RANK=", "LOCAL_WORLD_SIZE=",
	"GROUP_RANK=", "GROUP_WORLD_SIZE=", "ROLE_RANK=", "ROLE_WORLD_SIZE=", "ROLE_NAME=",
	"TORCHELASTIC_", "MASTER_",
	"OMPI_", "PMIX_", "PMI_", "MPI_LOCAL", "HYDI_",
	"SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_NODEID=", "SLURM_GTIDS=", "SLURM_TASK_PID=",
	"SLURM_STEP", "SLURM_NTASKS", "SLURM_NPROCS=", "SLURM_TASKS_PER_NODE=",
}

// withoutRanks returns the variables that name no rank of another launcher.
func withoutRanks(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		return slices.ContainsFunc(contradicting, func(start string) bool { return strings.HasPrefix(variable, start) })
	})
}

// rankVariables are those by which a rank finds its place in the job of that name.
func rankVariables(job string, rank, ranks int) []string {
	return []string{
		"GOCCL_SHM_NAME=/" + job,
		fmt.Sprintf("GOCCL_SHM_RANK=%d", rank),
		fmt.Sprintf("GOCCL_SHM_SIZE=%d", ranks),
		fmt.Sprintf("RANK=%d", rank),
		fmt.Sprintf("WORLD_SIZE=%d", ranks),
		fmt.Sprintf("LOCAL_RANK=%d", rank),
		fmt.Sprintf("LOCAL_WORLD_SIZE=%d", ranks),
	}
}
