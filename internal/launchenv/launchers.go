package launchenv

import (
	"cmp"
	"fmt"
	"strings"
)

// launcher is a launcher that Detect recognises by its variables.
type launcher struct {
	by         string
	rank, size string   // names of their variables
	variables  []string // all that are set if it is the launcher
	// isGoccl: only goccl run sets the variables, so an incomplete set is an error, and one rank
	// is a job.
	isGoccl bool
	// identify sets j.Apart if the ranks of j are not all on this node, and otherwise j.Key. If goccl
	// run has started them, it sets both.
	identify func(e environment, j *Job) error
}

// launchers are in the order in which Detect looks for them. torchrun's variables include
// those of torch's init method env://.
var launchers = []launcher{
	{"goccl run", "GOCCL_SHM_RANK", "GOCCL_SHM_SIZE", []string{"GOCCL_SHM_NAME", "GOCCL_SHM_RANK", "GOCCL_SHM_SIZE"}, true, identifyGoccl},
	{"torchrun", "RANK", "WORLD_SIZE", []string{"RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"}, false, identifyTorchrun},
	{"env://", "RANK", "WORLD_SIZE", []string{"RANK", "WORLD_SIZE", "MASTER_ADDR"}, false, identifyEnv},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, false, identifyOpenMPI},
	{"PMI", "PMI_RANK", "PMI_SIZE", []string{"PMI_RANK", "PMI_SIZE"}, false, identifyPMI},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", []string{"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}, false, identifySlurm},
}

func identifyGoccl(e environment, j *Job) error {
	name := e.get("GOCCL_SHM_NAME")
	rest, ok := strings.CutPrefix(name, "/")
	if !ok || rest == "" || strings.Contains(rest, "/") {
		return &Error{Contradiction, []string{"GOCCL_SHM_NAME"}, fmt.Sprintf(
			"GOCCL_SHM_NAME=%s: a job's name is a slash followed by text without a slash, such as /train-17", name)}
	}

	j.Key = keyOfName(rest)
	if e.get(NodesVariable) == "" {
		return nil
	}
	n, err := e.number(NodesVariable, 1)
	if n > 1 {
		j.Apart = fmt.Sprintf("by %s=%d they are on %d nodes", NodesVariable, n, n)
	}
	return err
}

// identifyEnv looks whether MASTER_ADDR, rank 0's address by torch's rules, is this node's.
// The port, which rank 0 holds, identifies the job on it.
func identifyEnv(e environment, j *Job) (err error) {
	if err := e.identified(j, "MASTER_PORT"); err != nil {
		return err
	}
	if j.Port, err = e.number("MASTER_PORT", 1); err != nil {
		return err
	}

	if j.Port > 65535 {
		return &Error{Contradiction, []string{"MASTER_PORT"}, fmt.Sprintf("MASTER_PORT=%d: ports are numbers from 1 to 65535", j.Port)}
	}
	if e.get("LOCAL_WORLD_SIZE") != "" {
		if err := e.together(j, "LOCAL_WORLD_SIZE"); err != nil {
			return err
		}
	}

	if e.get("SLURM_STEP_NUM_NODES") != "" {
		if err := e.oneNode(j); err != nil {
			return err
		}
	}

	isCounted := e.get("LOCAL_WORLD_SIZE") != "" || e.get("SLURM_STEP_NUM_NODES") != ""
	if hasSecret := j.Secret != "" || IsOpen(e.get); hasSecret && !isCounted && !IsLoopback(e.get("MASTER_ADDR")) {
		j.Apart = "with a secret, and without LOCAL_WORLD_SIZE, they may be on several nodes"
	}
	if j.Apart == "" {
		if err := e.local(e.get("MASTER_ADDR")); err != nil {
			j.Apart = fmt.Sprintf("MASTER_ADDR=%s is not an address of this node (%v; if all ranks are on this one, use 127.0.0.1)", e.get("MASTER_ADDR"), err)
		}
	}
	j.Key = key("env", e.get("MASTER_PORT"), digest(e.namespace("net")))
	return nil
}

func identifyTorchrun(e environment, j *Job) error {
	if err := e.identified(j, "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "LOCAL_WORLD_SIZE"); err != nil {
		return err
	}
	j.Key = key("torchrun", e.get("TORCHELASTIC_RUN_ID"), e.get("MASTER_ADDR"), e.get("MASTER_PORT"), e.get("TORCHELASTIC_RESTART_COUNT"),
		digest(e.namespace("net")))
	return e.together(j, "LOCAL_WORLD_SIZE")
}

func identifyOpenMPI(e environment, j *Job) error {
	if err := e.identified(j, "PMIX_NAMESPACE", "OMPI_COMM_WORLD_LOCAL_SIZE"); err != nil {
		return err
	}
	j.Key = key("openmpi", e.get("PMIX_NAMESPACE"), digest(e.mpirun()...))
	return e.together(j, "OMPI_COMM_WORLD_LOCAL_SIZE")
}

// mpirun identifies Open MPI's mpirun on this machine by the address of its server and the
// network namespace in which that is unique. The variable of the address depends on the
// version of PMIx. Without one, PMIX_NAMESPACE has the process id of mpirun, which is
// unique in its pid namespace.
func (e environment) mpirun() []string {
	parts, found := []string{e.namespace("net")}, false
	for _, version := range []string{"61", "51", "41", "4", "3", "21", "2"} {
		uri := e.get("PMIX_SERVER_URI" + version)
		parts, found = append(parts, uri), found || uri != ""
	}
	if !found {
		parts = append(parts, e.namespace("pid"))
	}
	return parts
}

// identifyPMI reads the number of ranks on this node from the variables that launchers add
// to PMI: MPICH's and Intel's, Cray's, Slurm's.
func identifyPMI(e environment, j *Job) error {
	var err error
	switch {
	case e.get("MPI_LOCALNRANKS") != "":
		err = e.together(j, "MPI_LOCALNRANKS")
	case e.get("PMI_LOCAL_SIZE") != "":
		err = e.together(j, "PMI_LOCAL_SIZE")
	case e.get("SLURM_STEP_NUM_NODES") != "":
		err = e.oneNode(j)
	default:
		err = e.identified(j, "MPI_LOCALNRANKS")
	}

	if err != nil || j.Apart != "" {
		return err
	}
	var parts []string
	if id := e.get("PMI_JOBID"); id != "" {
		parts = append(parts, id, e.slurmRestart())
	}
	// The ranks of MPI_Comm_spawn are another job, but may have the same proxy.
	if spawned := e.get("PMI_SPAWNED"); spawned == "" || spawned == "0" {
		if proxy := e.proxy(); proxy != "" {
			parts = append(parts, digest(proxy))
		}
	}
	if parts == nil {
		return e.identified(j, "PMI_JOBID")
	}
	j.Key = key("pmi", parts...)
	return nil
}

func identifySlurm(e environment, j *Job) error {
	if err := e.identified(j, "SLURM_JOB_ID", "SLURM_STEP_NUM_NODES"); err != nil {
		return err
	}
	j.Key = key("slurm", e.get("SLURM_JOB_ID"), e.get("SLURM_STEP_ID"), e.slurmRestart())
	return e.oneNode(j)
}

// slurmRestart counts how often the job was requeued. The variable is unset before that.
func (e environment) slurmRestart() string { return cmp.Or(e.get("SLURM_RESTART_COUNT"), "0") }

// identified returns an error unless the variables, which identify the job, are all set.
func (e environment) identified(j *Job, variables ...string) error {
	missing := e.unset(variables...)
	if len(missing) == 0 {
		return nil
	}
	return &Error{Missing, missing, fmt.Sprintf(
		"%v, but they do not identify the job and its nodes: %s; "+
			"give all ranks of a job the same GOCCL_SHM_NAME, such as /train-17, which no other job has, and set GOCCL_SHM_RANK and GOCCL_SHM_SIZE, "+
			"or start the ranks with goccl run", j, isNotSet(missing))}
}

// together sets j.Apart unless all ranks are on this node. The variable local holds the number
// of ranks on this node.
func (e environment) together(j *Job, local string) error {
	n, err := e.number(local, 1)
	size, _, _ := strings.Cut(j.SizeFrom, "=")
	switch {
	case err != nil:
		return err
	case n > j.Size:
		return &Error{Contradiction, []string{local, size}, fmt.Sprintf(
			"%s=%d and %s contradict each other: this node cannot have more ranks than the job", local, n, j.SizeFrom)}
	case n < j.Size:
		j.Apart = fmt.Sprintf("by %s=%d only %d of them are on this node", local, n, n)
	}
	return nil
}

// oneNode is together for Slurm, which counts nodes.
func (e environment) oneNode(j *Job) error {
	const variable = "SLURM_STEP_NUM_NODES"
	n, err := e.number(variable, 1)
	if err == nil && n > 1 {
		j.Apart = fmt.Sprintf("by %s=%d they are on %d nodes", variable, n, n)
	}
	return err
}

func isNotSet(missing []string) string {
	if len(missing) > 1 {
		return list(missing) + " are not set"
	}
	return list(missing) + " is not set"
}

// list joins names with commas and "and".
func list(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
