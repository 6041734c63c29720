package launchenv

import (
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

type variables map[string]string

// The relevant variables of launchers, on rank 1 of 4: copied from real ranks, and for Slurm
// from its documentation.
var (
	byHand = variables{"GOCCL_SHM_NAME": "/train-17", "GOCCL_SHM_RANK": "1", "GOCCL_SHM_SIZE": "4"}
	run    = variables{
		"GOCCL_SHM_NAME": "/goccl-0123456789abcdef", "GOCCL_SHM_RANK": "1", "GOCCL_SHM_SIZE": "4",
		"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4",
	}
	torchrun = variables{ // 1.13
		"GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4",
		"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1", "RANK": "1", "ROLE_NAME": "default", "ROLE_RANK": "1", "ROLE_WORLD_SIZE": "4",
		"TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_USE_AGENT_STORE": "True", "WORLD_SIZE": "4",
	}
	env        = variables{"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
	standalone = torchrun.with(variables{
		"MASTER_ADDR": "localhost", "MASTER_PORT": "46331", "TORCHELASTIC_RUN_ID": "5f582714-e222-44be-bb4e-18cc5f0e95bb", "TORCHELASTIC_USE_AGENT_STORE": "False",
	})
	openMPI = variables{ // 4.1.4
		"OMPI_APP_CTX_NUM_PROCS": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "OMPI_COMM_WORLD_NODE_RANK": "1",
		"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_MCA_ess_base_jobid": "96337921", "OMPI_UNIVERSE_SIZE": "4",
		"PMIX_ID": "96337921.1", "PMIX_NAMESPACE": "96337921", "PMIX_RANK": "1", "PMIX_SERVER_URI2": "96337920.0;tcp4://127.0.0.1:59029", "PMIX_VERSION": "4.2.2rc2",
	}
	mpich = variables{ // 4.0.2
		"HYDI_CONTROL_FD": "7", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME": "vm", "MPI_LOCALNRANKS": "4", "MPI_LOCALRANKID": "1", "PMI_FD": "6", "PMI_RANK": "1", "PMI_SIZE": "4",
	}
	srun = variables{
		"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "1",
		"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "1", "SLURM_NTASKS": "4", "SLURM_NPROCS": "4", "SLURM_NNODES": "1",
	}
	srunPMI2 = srun.with(variables{"PMI_FD": "12", "PMI_JOBID": "4711.2", "PMI_RANK": "1", "PMI_SIZE": "4"})
	sbatch   = variables{"SLURM_JOB_ID": "4711", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_NPROCS": "4", "SLURM_NNODES": "1"}
)

// with returns v overridden by others; an empty value unsets a variable.
func (v variables) with(others ...variables) variables {
	v = maps.Clone(v)
	for _, o := range others {
		maps.Copy(v, o)
	}
	return v
}

// detectIn is Detect below a proxy of that identity, "" for none.
func detectIn(v variables, proxy string) (*Job, error) { return detectAmong(v, proxy, nil) }

// detectAmong is detectIn in these namespaces.
func detectAmong(v variables, proxy string, namespaces variables) (*Job, error) {
	return detect(environment{
		get:       func(name string) string { return v[name] },
		proxy:     func() string { return proxy },
		namespace: func(kind string) string { return namespaces[kind] },
		local: func(host string) error {
			if host != "localhost" {
				return errors.New("it is another one's")
			}
			return nil
		},
	})
}

func TestLaunched(t *testing.T) {
	const proxy = "pid:[4026531836] 26962 8190345"
	namespaces := variables{"net": "net:[4026531840]", "pid": "pid:[4026531836]"}
	inNet := digest(namespaces["net"])
	server := func(uri string) string {
		return digest(namespaces["net"], "", "", "", "", "", "", uri) // PMIX_SERVER_URI2 is looked up last
	}
	nowhere := digest(namespaces["net"], "", "", "", "", "", "", "", namespaces["pid"])
	for name, c := range map[string]struct {
		v                  variables
		by, key            string
		rankFrom, sizeFrom string
	}{
		"by hand":               {byHand, "goccl run", "train-17", "GOCCL_SHM_RANK=1", "GOCCL_SHM_SIZE=4"},
		"goccl run":             {run, "goccl run", "goccl-0123456789abcdef", "GOCCL_SHM_RANK=1", "GOCCL_SHM_SIZE=4"},
		"torchrun":              {torchrun, "torchrun", "torchrun-none-127.0.0.1-29500-0-" + inNet, "RANK=1", "WORLD_SIZE=4"},
		"torchrun --standalone": {standalone, "torchrun", "torchrun-5f582714-e222-44be-bb4e-18cc5f0e95bb-l-" + digest("5f582714-e222-44be-bb4e-18cc5f0e95bb", "localhost", "46331", "0", inNet), "RANK=1", "WORLD_SIZE=4"},
		"mpirun":                {openMPI, "Open MPI", "openmpi-96337921-" + server("96337920.0;tcp4://127.0.0.1:59029"), "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4"},
		"mpirun of version 5": {openMPI.with(variables{"PMIX_NAMESPACE": "prterun-vm-2611@1", "PMIX_SERVER_URI2": ""}), "Open MPI",
			"openmpi-prterun-vm-2611_1-" + nowhere + "-" + digest("prterun-vm-2611@1", nowhere), "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4"},
		"mpiexec.mpich":        {mpich, "PMI", "pmi-" + digest(proxy), "PMI_RANK=1", "PMI_SIZE=4"},
		"srun":                 {srun, "Slurm", "slurm-4711-2-0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4"},
		"srun, requeued":       {srun.with(variables{"SLURM_RESTART_COUNT": "3"}), "Slurm", "slurm-4711-2-3", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4"},
		"mpirun inside srun":   {srun.with(openMPI), "Open MPI", "openmpi-96337921-" + server("96337920.0;tcp4://127.0.0.1:59029"), "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4"},
		"torchrun inside srun": {srun.with(torchrun), "torchrun", "torchrun-none-127.0.0.1-29500-0-" + inNet, "RANK=1", "WORLD_SIZE=4"},
		"ours inside of all":   {srun.with(openMPI, mpich, torchrun, run), "goccl run", "goccl-0123456789abcdef", "GOCCL_SHM_RANK=1", "GOCCL_SHM_SIZE=4"},
		"mpiexec.mpich below srun --mpi=pmi2": {srunPMI2.with(mpich), "PMI",
			"pmi-4711.2-0-" + digest(proxy), "PMI_RANK=1", "PMI_SIZE=4"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := detectAmong(c.v, proxy, namespaces)
			require.NoError(t, err)
			require.Equal(t, &Job{Rank: 1, Size: 4, Key: c.key, By: c.by, RankFrom: c.rankFrom, SizeFrom: c.sizeFrom}, got)
			require.LessOrEqual(t, len(got.Key), 64)
		})
	}
	got, err := detectIn(srunPMI2.with(variables{"SLURM_RESTART_COUNT": "2"}), "")
	require.NoError(t, err)
	require.Equal(t, "pmi-4711.2-2", got.Key)
	require.Equal(t, "this process is rank 1 of 4 by the variables of PMI (PMI_RANK=1, PMI_SIZE=4)", got.String())
}

// torch's env:// variables, set by hand for one node, make ranks.
func TestEnv(t *testing.T) {
	host, container := variables{"net": "net:[1]"}, variables{"net": "net:[2]"}
	j, err := detectAmong(env, "", host)
	require.NoError(t, err)
	require.Equal(t, &Job{Rank: 1, Size: 4, Key: "env-29500-" + digest("net:[1]"), Port: 29500, By: "env://", RankFrom: "RANK=1", SizeFrom: "WORLD_SIZE=4"}, j)
	other, err := detectAmong(env, "", container)
	require.NoError(t, err)
	require.NotEqual(t, j.Key, other.Key)
	other, err = detectAmong(env.with(variables{"MASTER_PORT": "29501"}), "", host)
	require.NoError(t, err)
	require.NotEqual(t, j.Key, other.Key)
	none, err := detectIn(env.with(variables{"RANK": "0", "WORLD_SIZE": "1"}), "")
	require.NoError(t, err)
	require.Nil(t, none)
}

// This node has its addresses, in brackets as in a URL too, those that stand for all of its own,
// and its own name, which no resolver need know. An address of another node is none of them, also
// in brackets.
func TestIsLocal(t *testing.T) {
	before := hostname
	hostname = func() (string, error) { return "Node-7.invalid", nil }
	t.Cleanup(func() { hostname = before })
	for _, host := range []string{"localhost", "127.0.0.1", "127.0.1.1", "::1", "[::1]", "[127.0.0.1]", "0.0.0.0", "::", "[::]", "Node-7.invalid", "node-7.invalid"} {
		require.NoError(t, isLocal(host), host)
		env := variables{"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": host, "MASTER_PORT": "29500"}
		j, err := Detect(func(name string) string { return env[name] })
		require.NoError(t, err)
		require.Empty(t, j.Apart, host)
	}
	for _, host := range []string{"192.0.2.1", "[192.0.2.1]", "[2001:db8::1]", "node-8.invalid", "[]"} { // of examples
		require.Error(t, isLocal(host), host)
	}
}

// A secret belongs to the job and is not part of its text.
func TestSecret(t *testing.T) {
	j, err := detectIn(run.with(variables{"GOCCL_SHM_SECRET": "hush"}), "")
	require.NoError(t, err)
	require.Equal(t, "hush", j.Secret)
	require.NotContains(t, j.String()+j.Key, "hush")
	j, err = detectIn(torchrun.with(variables{"GOCCL_SHM_SECRET": "hush"}), "")
	require.NoError(t, err, "what an outer goccl run has left is nobody's")
	require.Empty(t, j.Secret)
}

// A single rank is a job only if the variables cannot have been set by accident.
func TestOneRank(t *testing.T) {
	one := variables{"GOCCL_SHM_NAME": "/train-17", "GOCCL_SHM_RANK": "0", "GOCCL_SHM_SIZE": "1"}
	for name, v := range map[string]variables{
		"by hand":              one,
		"goccl run -n 1":       run.with(one, variables{"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}),
		"inside of all others": srun.with(openMPI, mpich, torchrun, one),
	} {
		got, err := detectIn(v, "a proxy")
		require.NoError(t, err, name)
		require.Equal(t, &Job{Rank: 0, Size: 1, Key: "train-17", By: "goccl run", RankFrom: "GOCCL_SHM_RANK=0", SizeFrom: "GOCCL_SHM_SIZE=1"}, got, name)
	}
}

func TestNotLaunched(t *testing.T) {
	for name, v := range map[string]variables{
		"nothing":                     {},
		"a stray WORLD_SIZE":          {"WORLD_SIZE": "4"},
		"a stray RANK":                {"RANK": "1"},
		"a RANK that is no number":    {"RANK": "gold", "WORLD_SIZE": "4"},
		"a RANK beyond WORLD_SIZE":    {"RANK": "7", "WORLD_SIZE": "4"},
		"a RANK of one":               {"RANK": "0", "WORLD_SIZE": "1"},
		"one rank, of two launchers":  openMPI.with(variables{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1", "RANK": "1", "WORLD_SIZE": "4"}),
		"a stray PMI_SIZE":            {"PMI_SIZE": "4"},
		"a stray size of Open MPI":    {"OMPI_COMM_WORLD_SIZE": "4"},
		"the shell of sbatch":         sbatch,
		"a step without tasks":        sbatch.with(variables{"SLURM_STEP_ID": "0"}),
		"one rank by torchrun":        torchrun.with(variables{"RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}),
		"one rank by mpirun":          openMPI.with(variables{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}),
		"one rank by mpiexec":         mpich.with(variables{"PMI_RANK": "0", "PMI_SIZE": "1", "MPI_LOCALNRANKS": "1"}),
		"one rank by srun":            srun.with(variables{"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}),
		"one, and no word of the job": {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"},
		"the innermost decides":       srun.with(openMPI, variables{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}),
		"what is set to nothing":      {"GOCCL_SHM_NAME": "", "RANK": "", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost"},
	} {
		got, err := detectIn(v, "a proxy")
		require.NoError(t, err, name)
		require.Nil(t, got, name)
	}
}

func TestErrors(t *testing.T) {
	const (
		give = "; give all ranks of a job the same GOCCL_SHM_NAME, such as /train-17, which no other job has, " +
			"and set GOCCL_SHM_RANK and GOCCL_SHM_SIZE, or start the ranks with goccl run"
		wholly = "set all of GOCCL_SHM_NAME, GOCCL_SHM_RANK and GOCCL_SHM_SIZE, as goccl run does, or none of them"
	)
	for name, c := range map[string]struct {
		v         variables
		kind      Kind
		variables []string
		text      string
	}{
		// All of them are required.
		"no name": {byHand.with(variables{"GOCCL_SHM_NAME": ""}), Missing, []string{"GOCCL_SHM_NAME"},
			"GOCCL_SHM_NAME is not set: " + wholly},
		"a name alone": {variables{"GOCCL_SHM_NAME": "/x"}, Missing, []string{"GOCCL_SHM_RANK", "GOCCL_SHM_SIZE"},
			"GOCCL_SHM_RANK and GOCCL_SHM_SIZE are not set: " + wholly},
		"no size, but torchrun's": {torchrun.with(byHand, variables{"GOCCL_SHM_SIZE": ""}), Missing, []string{"GOCCL_SHM_SIZE"},
			"GOCCL_SHM_SIZE is not set: " + wholly},
		"no address": {variables{"RANK": "1", "WORLD_SIZE": "4"}, Missing, []string{"MASTER_ADDR", "MASTER_PORT"},
			"this process is rank 1 of 4 by the variables of env:// (RANK=1, WORLD_SIZE=4), and MASTER_ADDR and MASTER_PORT are not set: set MASTER_ADDR and MASTER_PORT on all ranks, as torchrun does, start them with goccl run, or unset RANK and WORLD_SIZE if this process is no rank of a job"},
		"a port alone": {env.with(variables{"MASTER_ADDR": ""}), Missing, []string{"MASTER_ADDR"},
			"this process is rank 1 of 4 by the variables of env:// (RANK=1, WORLD_SIZE=4), and MASTER_ADDR is not set: set MASTER_ADDR and MASTER_PORT on all ranks, as torchrun does, start them with goccl run, or unset RANK and WORLD_SIZE if this process is no rank of a job"},
		// Names start with a slash and have no other.
		"a name without a slash": {byHand.with(variables{"GOCCL_SHM_NAME": "x"}), Contradiction, []string{"GOCCL_SHM_NAME"},
			"GOCCL_SHM_NAME=x: a job's name is a slash followed by text without a slash, such as /train-17"},
		"a name of a slash": {byHand.with(variables{"GOCCL_SHM_NAME": "/"}), Contradiction, []string{"GOCCL_SHM_NAME"},
			"GOCCL_SHM_NAME=/: a job's name is a slash followed by text without a slash, such as /train-17"},
		"a path": {byHand.with(variables{"GOCCL_SHM_NAME": "/../x"}), Contradiction, []string{"GOCCL_SHM_NAME"},
			"GOCCL_SHM_NAME=/../x: a job's name is a slash followed by text without a slash, such as /train-17"},
		"size 0": {byHand.with(variables{"GOCCL_SHM_SIZE": "0"}), Contradiction, []string{"GOCCL_SHM_SIZE"},
			"GOCCL_SHM_SIZE=0: the launcher's variable should be a number from 1 on"},
		"rank -1": {byHand.with(variables{"GOCCL_SHM_RANK": "-1"}), Contradiction, []string{"GOCCL_SHM_RANK"},
			"GOCCL_SHM_RANK=-1: the launcher's variable should be a number from 0 on"},
		"a size in words": {mpich.with(variables{"PMI_SIZE": "many"}), Contradiction, []string{"PMI_SIZE"},
			"PMI_SIZE=many: the launcher's variable should be a number from 1 on"},
		"rank 4 of 4": {openMPI.with(variables{"OMPI_COMM_WORLD_RANK": "4"}), Contradiction, []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
			"OMPI_COMM_WORLD_RANK=4 and OMPI_COMM_WORLD_SIZE=4 contradict each other: ranks count from 0, and the last of 4 is 3"},
		"rank 1 of 1": {byHand.with(variables{"GOCCL_SHM_SIZE": "1"}), Contradiction, []string{"GOCCL_SHM_RANK", "GOCCL_SHM_SIZE"},
			"GOCCL_SHM_RANK=1 and GOCCL_SHM_SIZE=1 contradict each other: ranks count from 0, and the last of 1 is 0"},
		"more here than anywhere": {torchrun.with(variables{"LOCAL_WORLD_SIZE": "5"}), Contradiction, []string{"LOCAL_WORLD_SIZE", "WORLD_SIZE"},
			"LOCAL_WORLD_SIZE=5 and WORLD_SIZE=4 contradict each other: this node cannot have more ranks than the job"},
		"a number here in words": {torchrun.with(variables{"LOCAL_WORLD_SIZE": "some"}), Contradiction, []string{"LOCAL_WORLD_SIZE"},
			"LOCAL_WORLD_SIZE=some: the launcher's variable should be a number from 1 on"},

		// Without a key, ranks might meet ranks of another job.
		"env:// without a port": {env.with(variables{"MASTER_PORT": ""}), Missing, []string{"MASTER_PORT"},
			"this process is rank 1 of 4 by the variables of env:// (RANK=1, WORLD_SIZE=4), but they do not identify the job and its nodes: " +
				"MASTER_PORT is not set" + give},
		"env:// and a port that cannot be": {env.with(variables{"MASTER_PORT": "70000"}), Contradiction, []string{"MASTER_PORT"},
			"MASTER_PORT=70000: ports are numbers from 1 to 65535"},
		"mpirun without a namespace": {openMPI.with(variables{"PMIX_NAMESPACE": ""}), Missing, []string{"PMIX_NAMESPACE"},
			"this process is rank 1 of 4 by the variables of Open MPI (OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=4), but they do not identify the job and its nodes: " +
				"PMIX_NAMESPACE is not set" + give},
		"PMI alone": {variables{"PMI_RANK": "1", "PMI_SIZE": "4"}, Missing, []string{"MPI_LOCALNRANKS"},
			"this process is rank 1 of 4 by the variables of PMI (PMI_RANK=1, PMI_SIZE=4), but they do not identify the job and its nodes: " +
				"MPI_LOCALNRANKS is not set" + give},
		"mpiexec.mpich, and no proxy in sight": {mpich, Missing, []string{"PMI_JOBID"},
			"this process is rank 1 of 4 by the variables of PMI (PMI_RANK=1, PMI_SIZE=4), but they do not identify the job and its nodes: " +
				"PMI_JOBID is not set" + give},
		"srun without a job": {srun.with(variables{"SLURM_JOB_ID": ""}), Missing, []string{"SLURM_JOB_ID"},
			"this process is rank 1 of 4 by the variables of Slurm (SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=4), but they do not identify the job and its nodes: " +
				"SLURM_JOB_ID is not set" + give},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := detectIn(c.v, "")
			require.Nil(t, got)
			require.EqualError(t, err, c.text)
			var failed *Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, c.kind, failed.Kind)
			require.Equal(t, c.variables, failed.Variables)
		})
	}
	_, err := detectIn(mpich.with(variables{"PMI_SPAWNED": "1"}), "a proxy")
	require.ErrorContains(t, err, "PMI_JOBID is not set", "the proxy is that of the spawning job as well")
}

// Ranks on several nodes have no key, and the job says how it knows.
func TestApart(t *testing.T) {
	for name, c := range map[string]struct {
		v    variables
		text string
	}{
		"torchrun":       {torchrun.with(variables{"LOCAL_WORLD_SIZE": "2"}), "by LOCAL_WORLD_SIZE=2 only 2 of them are on this node"},
		"mpirun":         {openMPI.with(variables{"OMPI_COMM_WORLD_LOCAL_SIZE": "3"}), "by OMPI_COMM_WORLD_LOCAL_SIZE=3 only 3 of them are on this node"},
		"mpiexec":        {mpich.with(variables{"MPI_LOCALNRANKS": "2"}), "by MPI_LOCALNRANKS=2 only 2 of them are on this node"},
		"Cray's PMI":     {mpich.with(variables{"MPI_LOCALNRANKS": "", "PMI_LOCAL_SIZE": "2"}), "by PMI_LOCAL_SIZE=2 only 2 of them are on this node"},
		"srun":           {srun.with(variables{"SLURM_STEP_NUM_NODES": "2"}), "by SLURM_STEP_NUM_NODES=2 they are on 2 nodes"},
		"srun and PMI":   {srunPMI2.with(variables{"SLURM_STEP_NUM_NODES": "2"}), "by SLURM_STEP_NUM_NODES=2 they are on 2 nodes"},
		"env://":         {env.with(variables{"LOCAL_WORLD_SIZE": "2"}), "by LOCAL_WORLD_SIZE=2 only 2 of them are on this node"},
		"an address":     {env.with(variables{"MASTER_ADDR": "far.example"}), "MASTER_ADDR=far.example is not an address of this node (it is another one's; if all ranks are on this one, use 127.0.0.1)"},
		"env:// of srun": {env.with(variables{"SLURM_STEP_NUM_NODES": "2"}), "by SLURM_STEP_NUM_NODES=2 they are on 2 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := detectIn(c.v, "")
			require.NoError(t, err)
			require.Equal(t, c.text, j.Apart)
			require.Equal(t, []int{1, 4}, []int{j.Rank, j.Size})
			require.Empty(t, j.Key)
			require.Zero(t, j.Port)
		})
	}
}

// Everything that distinguishes two jobs of a launcher makes another key.
func TestKeysDiffer(t *testing.T) {
	seen := map[string]string{}
	host := variables{"net": "net:[1]", "pid": "pid:[1]"}
	container := variables{"net": "net:[2]", "pid": "pid:[2]"}
	mpirun5 := openMPI.with(variables{"PMIX_NAMESPACE": "prterun-vm-7@1", "PMIX_SERVER_URI2": ""})
	uri41 := mpirun5.with(variables{"PMIX_SERVER_URI41": "prterun-vm-7@0.0;tcp4://127.0.0.1:59029"})
	for name, c := range map[string]struct {
		v     variables
		proxy string
		in    variables // namespaces, host if nil
	}{
		"goccl run":         {run, "", nil},
		"another name":      {run.with(variables{"GOCCL_SHM_NAME": "/goccl-1123456789abcdef"}), "", nil},
		"torchrun":          {torchrun, "", nil},
		"another id":        {torchrun.with(variables{"TORCHELASTIC_RUN_ID": "mine"}), "", nil},
		"another address":   {torchrun.with(variables{"MASTER_ADDR": "127.0.0.2"}), "", nil},
		"another port":      {torchrun.with(variables{"MASTER_PORT": "29501"}), "", nil},
		"another restart":   {torchrun.with(variables{"TORCHELASTIC_RESTART_COUNT": "1"}), "", nil},
		"standalone":        {standalone, "", nil},
		"another port, too": {standalone.with(variables{"MASTER_PORT": "46332"}), "", nil},
		"mpirun":            {openMPI, "", nil},
		"another namespace": {openMPI.with(variables{"PMIX_NAMESPACE": "96337922"}), "", nil},
		"another server":    {openMPI.with(variables{"PMIX_SERVER_URI2": "96337920.0;tcp4://127.0.0.1:59030"}), "", nil},
		"mpiexec":           {mpich, "pid:[1] 7 99", nil},
		"another start":     {mpich, "pid:[1] 7 100", nil},
		"below srun":        {srunPMI2.with(mpich), "pid:[1] 7 99", nil},
		"srun, PMI":         {srunPMI2, "", nil},
		"requeued, PMI":     {srunPMI2.with(variables{"SLURM_RESTART_COUNT": "1"}), "", nil},
		"srun":              {srun, "", nil},
		"another job":       {srun.with(variables{"SLURM_JOB_ID": "4712"}), "", nil},
		"another step":      {srun.with(variables{"SLURM_STEP_ID": "3"}), "", nil},
		"requeued":          {srun.with(variables{"SLURM_RESTART_COUNT": "1"}), "", nil},
		// A container may share only /dev/shm with another one.
		"torchrun in a container":                   {torchrun, "", container},
		"mpirun in a container":                     {openMPI, "", container},
		"mpirun 5":                                  {uri41, "", host},
		"mpirun 5, another server":                  {uri41.with(variables{"PMIX_SERVER_URI41": "prterun-vm-7@0.0;tcp4://127.0.0.1:59030"}), "", host},
		"mpirun 5 in a container":                   {uri41, "", container},
		"mpirun without an address":                 {mpirun5, "", host},
		"mpirun without an address, in a container": {mpirun5, "", variables{"net": "net:[1]", "pid": "pid:[2]"}},
	} {
		in := c.in
		if in == nil {
			in = host
		}
		j, err := detectAmong(c.v, c.proxy, in)
		require.NoError(t, err, name)
		require.Empty(t, seen[j.Key], "%s has the key of", name)
		seen[j.Key] = name
		again, err := detectAmong(c.v, c.proxy, in)
		require.NoError(t, err)
		require.Equal(t, j, again)
	}
}

// Ranks may have their own pid namespaces, as in one container for each rank: if an
// address identifies the job, such ranks have one key.
func TestRanksInContainers(t *testing.T) {
	for name, v := range map[string]variables{"torchrun": torchrun, "mpirun": openMPI} {
		one, err := detectAmong(v, "", variables{"net": "net:[1]", "pid": "pid:[1]"})
		require.NoError(t, err)
		other, err := detectAmong(v, "", variables{"net": "net:[1]", "pid": "pid:[2]"})
		require.NoError(t, err)
		require.Equal(t, one.Key, other.Key, name)
	}
}
