package launcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/launchenv"
)

// otherLaunchers are prefixes of the variables with which another launcher, or an outer goccl
// run, tells a process its rank, the number of ranks, and the address of its server. A rank
// must not inherit them. It does inherit users' settings of libraries (OMPI_ALLOW_RUN_AS_ROOT,
// OMPI_MCA_btl) and Slurm's variables for the job's directories and resources.
var otherLaunchers = []string{
	"GOCCL_SHM_", "GOCCL_NODES=", "GOCCL_RESTART=", launchenv.ReportVariable + "=", launchenv.ResultVariable + "=",
	"RANK=", "WORLD_SIZE=", "LOCAL_RANK=", "LOCAL_WORLD_SIZE=",
	"GROUP_RANK=", "GROUP_WORLD_SIZE=", "ROLE_RANK=", "ROLE_WORLD_SIZE=", "ROLE_NAME=",
	"TORCHELASTIC_", "MASTER_ADDR=", "MASTER_PORT=",
	"OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE=", "OMPI_APP_CTX_NUM_PROCS=", "OMPI_NUM_APP_CTX=", "OMPI_FIRST_RANKS=",
	"OMPI_FILE_LOCATION=", "OMPI_ARGV=", "OMPI_COMMAND=", "OMPI_MCA_ess", "OMPI_MCA_orte_", "OMPI_MCA_pmix=",
	"PMIX_ID=", "PMIX_NAMESPACE=", "PMIX_RANK=", "PMIX_SERVER_", "PMIX_VERSION=", "PMIX_HOSTNAME=",
	"PMIX_SECURITY_MODE=", "PMIX_GDS_MODULE=", "PMIX_BFROP_BUFFER_TYPE=", "PMIX_PTL_MODULE=", "PMIX_DSTORE_", "PMIX_SYSTEM_TMPDIR=",
	"PMI_", "MPI_LOCAL", "HYDI_",
	"SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_NODEID=", "SLURM_GTIDS=", "SLURM_TASK_PID=",
	"SLURM_STEP", "SLURM_NTASKS", "SLURM_NPROCS=", "SLURM_TASKS_PER_NODE=",
}

// withoutRanks returns environment without the variables that start with one of otherLaunchers.
func withoutRanks(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		return slices.ContainsFunc(otherLaunchers, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
	})
}

// environment returns the environment of a rank, without the variables of its rank. Of several
// entries for a variable the last counts, as in os/exec: a process would take the first.
func (j *Spec) environment() (kept []string) {
	all := withoutRanks(j.Environment)
	if j.Memory.Monitor != nil {
		all = append(all, "GOCCL_METRICS=true")
	}
	all = append(all, j.Variables...)

	last := make(map[string]int)
	for i, variable := range all {
		name, _, _ := strings.Cut(variable, "=")
		last[name] = i
	}
	for i, variable := range all {
		if name, _, _ := strings.Cut(variable, "="); last[name] == i {
			kept = append(kept, variable)
		}
	}
	return kept
}

// SetsVariable reports whether Spec.Run sets a variable itself, to a value of each rank or job.
func SetsVariable(name string) bool {
	variables := append(slices.Concat(rankVariables("", "", 0, 0, 0, 0), restartVariables(0)), "GOCCL_NODES=", launchenv.ReportVariable+"=", launchenv.ResultVariable+"=")
	return slices.ContainsFunc(variables, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// rankVariables returns the variables that make a process this rank of the job. The last two are
// its number among those of its node, and their number.
func rankVariables(job, secret string, rank, ranks, local, locals int) []string {
	return []string{
		"GOCCL_SHM_NAME=/" + job,
		"GOCCL_SHM_SECRET=" + secret,
		fmt.Sprintf("GOCCL_SHM_RANK=%d", rank),
		fmt.Sprintf("GOCCL_SHM_SIZE=%d", ranks),
		fmt.Sprintf("RANK=%d", rank),
		fmt.Sprintf("WORLD_SIZE=%d", ranks),
		fmt.Sprintf("LOCAL_RANK=%d", local),
		fmt.Sprintf("LOCAL_WORLD_SIZE=%d", locals),
	}
}

// restartVariables returns those that tell a rank how often the job has started before.
func restartVariables(restart int) []string {
	return []string{fmt.Sprintf("GOCCL_RESTART=%d", restart), fmt.Sprintf("TORCHELASTIC_RESTART_COUNT=%d", restart)}
}

// processors returns the variable that lets a Go program whose rank has one hyperthread run two
// threads. Otherwise an asynchronous call would wait until the goroutine that computes is
// preempted by the Go runtime, which takes 10 ms; the kernel preempts at once.
func processors(environment []string, share []int) []string {
	isSet := func(variable string) bool { return strings.HasPrefix(variable, "GOMAXPROCS=") }
	if len(share) > 1 || slices.ContainsFunc(environment, isSet) {
		return nil
	}
	return []string{"GOMAXPROCS=2"}
}
