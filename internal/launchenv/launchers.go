package launchenv

import (
	"cmp"
	"fmt"
	"strings"
)

// A launcher is known by the variables that it sets.
type launcher struct {
	by         string
	rank, size string // the variables of these
	alone      bool   // its job of one rank is a job
	// there reports whether the launcher's variables are there, all that it takes to
	// believe them.
	there func(environment) (bool, error)
	// place checks that all ranks of j are on this node, and sets j.Key.
	place func(e environment, j *Job) error
}

var launchers = []launcher{
	{"goccl run", "GOCCL_SHM_RANK", "GOCCL_SHM_SIZE", true, oursThere, placeOurs},
	{"env://", "RANK", "WORLD_SIZE", false, envThere, placeEnv},
	{"torchrun", "RANK", "WORLD_SIZE", false, torchrunThere, placeTorchrun},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false, are("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), placeOpenMPI},
	{"PMI", "PMI_RANK", "PMI_SIZE", false, are("PMI_RANK", "PMI_SIZE"), placePMI},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", false, are("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"), placeSlurm},
}

func are(variables ...string) func(environment) (bool, error) {
	return func(e environment) (bool, error) { return len(e.unset(variables...)) == 0, nil }
}

// oursThere takes one of our variables for the intention to set all of them.
func oursThere(e environment) (bool, error) {
	all := []string{"GOCCL_SHM_NAME", "GOCCL_SHM_RANK", "GOCCL_SHM_SIZE"}
	missing := e.unset(all...)
	switch len(missing) {
	case len(all):
		return false, nil
	case 0:
	default:
		return false, &Error{Missing, missing, fmt.Sprintf(
			"%s: set all of %s, as goccl run does, or none of them",
			isNotSet(missing, "though others of their kind are"), list(all))}
	}
	name := e.get("GOCCL_SHM_NAME")
	if rest, ok := strings.CutPrefix(name, "/"); !ok || rest == "" || strings.Contains(rest, "/") {
		return false, &Error{Contradiction, []string{"GOCCL_SHM_NAME"}, fmt.Sprintf(
			"GOCCL_SHM_NAME=%s: the name of a job is a slash and what follows it, without another slash, such as /train-17", name)}
	}
	return true, nil
}

func placeOurs(e environment, j *Job) error {
	j.Key = keyOfName(e.get("GOCCL_SHM_NAME")[1:])
	j.Secret = e.get("GOCCL_SHM_SECRET")
	return nil
}

// envThere reports whether a person, or a script, has set what torch's init method env://
// reads, and torchrun has not.
func envThere(e environment) (bool, error) {
	return len(e.unset("RANK", "WORLD_SIZE", "MASTER_ADDR")) == 0 && e.get("TORCHELASTIC_RUN_ID") == "", nil
}

// placeEnv takes the ranks for ranks on this node if MASTER_ADDR is, where rank 0 would be by
// torch's rules. The port says which job it is: rank 0 holds it.
func placeEnv(e environment, j *Job) (err error) {
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
	if err := e.local(e.get("MASTER_ADDR")); err != nil {
		return nodes(j, "MASTER_ADDR", "", fmt.Sprintf("MASTER_ADDR=%s is no address of this node (%v)", e.get("MASTER_ADDR"), err))
	}
	j.Key = key("env", e.get("MASTER_PORT"), digest(e.namespace("net")))
	return nil
}

// torchrunThere does not take a stray WORLD_SIZE for torchrun.
func torchrunThere(e environment) (bool, error) {
	return len(e.unset("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID")) == 0, nil
}

func placeTorchrun(e environment, j *Job) error {
	if err := e.identified(j, "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "LOCAL_WORLD_SIZE"); err != nil {
		return err
	}
	j.Key = key("torchrun", e.get("TORCHELASTIC_RUN_ID"), e.get("MASTER_ADDR"), e.get("MASTER_PORT"), e.get("TORCHELASTIC_RESTART_COUNT"),
		digest(e.namespace("net")))
	return e.together(j, "LOCAL_WORLD_SIZE")
}

func placeOpenMPI(e environment, j *Job) error {
	if err := e.identified(j, "PMIX_NAMESPACE", "OMPI_COMM_WORLD_LOCAL_SIZE"); err != nil {
		return err
	}
	j.Key = key("openmpi", e.get("PMIX_NAMESPACE"), digest(e.mpirun()...))
	return e.together(j, "OMPI_COMM_WORLD_LOCAL_SIZE")
}

// mpirun identifies Open MPI's mpirun on this machine: by the address of its server and the
// network namespace in which that is unique. Which variables hold the address depends on the
// version of PMIx. Where none does, PMIX_NAMESPACE has the process id of mpirun, and the
// pid namespace tells those apart.
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

// placePMI knows where the ranks are by what launchers add to PMI: MPICH's and
// Intel's, Cray's, Slurm's.
func placePMI(e environment, j *Job) error {
	switch {
	case e.get("MPI_LOCALNRANKS") != "":
		if err := e.together(j, "MPI_LOCALNRANKS"); err != nil {
			return err
		}
	case e.get("PMI_LOCAL_SIZE") != "":
		if err := e.together(j, "PMI_LOCAL_SIZE"); err != nil {
			return err
		}
	case e.get("SLURM_STEP_NUM_NODES") != "":
		if err := e.oneNode(j); err != nil {
			return err
		}
	default:
		return e.identified(j, "MPI_LOCALNRANKS")
	}
	var parts []string
	if id := e.get("PMI_JOBID"); id != "" {
		parts = append(parts, id, e.slurmRestart())
	}
	// What MPI_Comm_spawn starts, as a job of its own, may have the same proxy.
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

func placeSlurm(e environment, j *Job) error {
	if err := e.identified(j, "SLURM_JOB_ID", "SLURM_STEP_NUM_NODES"); err != nil {
		return err
	}
	j.Key = key("slurm", e.get("SLURM_JOB_ID"), e.get("SLURM_STEP_ID"), e.slurmRestart())
	return e.oneNode(j)
}

// slurmRestart is unset until a job is requeued.
func (e environment) slurmRestart() string { return cmp.Or(e.get("SLURM_RESTART_COUNT"), "0") }

// identified returns an error unless all variables are set that tell this job from
// others.
func (e environment) identified(j *Job, variables ...string) error {
	missing := e.unset(variables...)
	if len(missing) == 0 {
		return nil
	}
	return &Error{Missing, missing, fmt.Sprintf(
		"%v, but they do not say of which job on which nodes: %s; "+
			"give all ranks of a job the same GOCCL_SHM_NAME, such as /train-17, which no other job has, and set GOCCL_SHM_RANK and GOCCL_SHM_SIZE, "+
			"or start the ranks with goccl run", j, isNotSet(missing, ""))}
}

// together compares the number of ranks on this node, which the variable local
// holds, with that of all.
func (e environment) together(j *Job, local string) error {
	n, err := e.number(local, 1)
	size, _, _ := strings.Cut(j.SizeFrom, "=")
	switch {
	case err != nil:
		return err
	case n > j.Size:
		return &Error{Contradiction, []string{local, size}, fmt.Sprintf(
			"%s=%d and %s contradict each other: there cannot be more ranks on this node than on all", local, n, j.SizeFrom)}
	case n < j.Size:
		return nodes(j, local, size, fmt.Sprintf("%s=%d says that only %d of them are on this node", local, n, n))
	}
	return nil
}

// oneNode is together by Slurm's count of nodes.
func (e environment) oneNode(j *Job) error {
	const variable = "SLURM_STEP_NUM_NODES"
	n, err := e.number(variable, 1)
	if err == nil && n > 1 {
		err = nodes(j, variable, "", fmt.Sprintf("%s=%d says that they are on %d nodes", variable, n, n))
	}
	return err
}

func nodes(j *Job, variable, size, why string) error {
	variables := []string{variable}
	if size != "" {
		variables = append(variables, size)
	}
	return &Error{Nodes, variables, fmt.Sprintf(
		"%v, and %s: ranks on several nodes are not available yet; start all of them on one node", j, why)}
}

func isNotSet(missing []string, though string) string {
	s := list(missing) + " is not set"
	if len(missing) > 1 {
		s = list(missing) + " are not set"
	}
	if though != "" {
		s += " " + though
	}
	return s
}

// list writes names as a sentence does.
func list(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
