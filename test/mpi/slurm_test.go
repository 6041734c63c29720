//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slurm is a Slurm whose controller is on the head of a cluster, and whose daemons are on its nodes. They end with the head.
type slurm struct{ *cluster }

// slurmCommands are what the test starts.
var slurmCommands = []string{"munged", "slurmctld", "slurmd", "srun", "sinfo"}

// newSlurm starts Slurm on stand-ins for nodes.
func newSlurm(t *testing.T, nodes int) *slurm {
	t.Helper()
	for _, name := range slurmCommands {
		if _, err := exec.LookPath(name); err != nil {
			require.NotEqual(t, "required", os.Getenv(requiredVariable), "%s is not installed", name)
			t.Skip(name + " is not installed: apt-get install munge slurmctld slurmd slurm-client libpmix-dev")
		}
	}
	s := &slurm{newCluster(t, nodes)}
	s.alive++ // slurmd
	key := make([]byte, 1024)
	_, err := rand.Read(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.file("munge.key"), key, 0o400))
	require.NoError(t, os.WriteFile(s.file("slurm.conf"), s.configuration(), 0o600))
	s.daemon(t, "", "munged", "--foreground", "--force", "--key-file="+s.file("munge.key"), "--socket="+s.file("munge.sock"),
		"--pid-file="+s.file("munged.pid"), "--log-file="+s.file("munged.log"), "--seed-file="+s.file("munge.seed"))
	require.Eventually(t, func() bool {
		_, err := os.Stat(s.file("munge.sock"))
		return err == nil
	}, time.Minute, 10*time.Millisecond, "munged does not listen")
	s.daemon(t, "", "slurmctld", "-D", "-f", s.file("slurm.conf"))
	for i := range nodes {
		s.daemon(t, nodeName(i+1), "slurmd", "-D", "-N", nodeName(i+1), "-f", s.file("slurm.conf"))
	}
	require.Eventually(t, func() bool {
		out, _ := s.client(t.Context(), "sinfo", "--noheader", "--Node", "--format=%t").Output()
		return string(out) == strings.Repeat("idle\n", nodes)
	}, time.Minute, 50*time.Millisecond, "not all nodes have come")
	return s
}

func (s *slurm) file(name string) string { return filepath.Join(s.place, name) }

// configuration is slurm.conf.
func (s *slurm) configuration() []byte {
	return fmt.Appendf(nil, `ClusterName=goccl
SlurmctldHost=%[1]s(10.77.0.100)
SlurmUser=root
AuthInfo=socket=%[2]s/munge.sock
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool-%%n
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd-%%n.pid
SlurmctldLogFile=%[2]s/slurmctld.log
SlurmdLogFile=%[2]s/slurmd-%%n.log
TmpFS=%[3]s
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
NodeName=node[1-%[4]d] NodeAddr=10.77.0.[1-%[4]d] CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`, headName, s.place, temporary(s.place), len(s.nodes))
}

// daemon starts a program on a node, or on the head if that is "".
func (s *slurm) daemon(t *testing.T, node, name string, args ...string) {
	t.Helper()
	if node != "" {
		args, name = append([]string{node, "exec", name}, args...), s.agent()
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := s.command(ctx, name, args...)
	said, err := os.Create(s.file(strings.Join([]string{filepath.Base(name), node, "said"}, "-")))
	require.NoError(t, err)
	c.Stdout, c.Stderr = said, said
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		cancel()
		_ = c.Wait() // the program itself ends with the head
		said.Close()
		if t.Failed() {
			logs, _ := filepath.Glob(s.file("*-said"))
			more, _ := filepath.Glob(s.file("*.log"))
			for _, file := range append(logs, more...) {
				text, _ := os.ReadFile(file)
				t.Logf("%s:\n%s", file, text)
			}
		}
	})
}

// client is a command of Slurm on the head.
func (s *slurm) client(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := s.command(ctx, name, args...)
	c.Env = append(os.Environ(), "SLURM_CONF="+s.file("slurm.conf"), "TMPDIR="+temporary(s.place))
	return c
}

// srun runs ranks on the first node and returns what they print.
func (s *slurm) srun(t *testing.T, pmi string, env []string, args ...string) (said string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := s.client(ctx, "srun", append([]string{"--mpi=" + pmi, "-N", "1", "-n", "4"}, args...)...)
	c.Env = append(append(c.Env, "GOCCL_TIMEOUT=30s"), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

// mpi is an MPI whose ranks srun starts.
func (s *slurm) mpi(name, pmi string) mpi {
	return mpi{name: name, launcher: "srun", args: []string{"--mpi=" + pmi}, across: func(c *cluster, perNode int, _ []string) []string {
		return []string{"-N", fmt.Sprint(len(c.nodes)), "--ntasks-per-node", fmt.Sprint(perNode)}
	}}
}

// variables are those of ranks on several nodes. Without these, bytes take a way past the links.
func (s *slurm) variables(more ...string) []string {
	return append([]string{"SLURM_CONF=" + s.file("slurm.conf"), "UCX_TLS=tcp,self,posix",
		"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=vader,tcp,self", "OMPI_MCA_btl_tcp_if_include=" + subnet}, more...)
}

// Programs run under srun as under the MPIs' own launchers: on one node through shared memory or MPI, and between two nodes
// through MPI, without a variable that asks for it.
func TestSlurm(t *testing.T) {
	s := newSlurm(t, 2)
	self, err := os.Executable()
	require.NoError(t, err)
	ddp := build(t, "examples/ddp")
	for _, with := range []struct{ name, pmi string }{{"Open MPI", "pmix"}, {"MPICH", "pmi2"}} {
		t.Run(with.pmi, func(t *testing.T) {
			for _, over := range []string{"shm", "mpi"} {
				out, err := s.srun(t, with.pmi, nil, ddp, "-epochs", "1", "-transport", over)
				require.NoError(t, err, "%s", out)
				require.Contains(t, out, " over "+over+" ")
				require.Contains(t, out, "weights: equal bit by bit on all 4 ranks")
			}
			out, err := s.srun(t, with.pmi, []string{partVariable + "=dies", dyingVariable + "=1", "GOCCL_TRANSPORT=mpi"}, self)
			require.Error(t, err)
			for _, rank := range []int{0, 2, 3} { // srun lets them end by themselves
				require.Regexp(t, fmt.Sprintf(`dies: rank %d: .*: peer lost: rank 1 \(pid \d+(, host \S+)?\) is gone`, rank), out)
			}
			passes := s.passes
			if with.name == "MPICH" {
				passes = s.isRight // see TestNodes
			}
			for _, part := range []string{"volume", "program", "again", "missing", "mismatch"} {
				passes(t, s.mpi(with.name, with.pmi), 2, part, s.variables("TEST_GOCCL_SEED=3")...)
			}
		})
	}
	// If srun and the library do not understand each other, MPICH counts one rank, and Open MPI ends the process.
	with := func(library string) []string {
		return []string{partVariable + "=foreign", "GOCCL_TRANSPORT=mpi", "GOCCL_MPI_LIBRARY=" + library}
	}
	said, err := s.srun(t, "pmix", with("libmpich.so.12"), self)
	require.NoError(t, err, "%s", said)
	require.ElementsMatch(t, []byte(strings.Repeat("passed\n", 4)), []byte(said), "%s", said) // see mpi.passes
	said, err = s.srun(t, "pmi2", with("libmpi.so.40"), self)
	require.Error(t, err)
	require.Contains(t, said, "OMPI was not built with SLURM's PMI support")
	// Without PMI srun says nothing to MPI. On one node there is shared memory.
	said, err = s.srun(t, "none", nil, ddp, "-epochs", "1")
	require.NoError(t, err, "%s", said)
	require.Contains(t, said, " over shm ")
	j := s.start(t, s.mpi("", "none"), 2, "error", s.variables()...)
	require.Error(t, j.wait(t))
	require.Contains(t, j.said(), "set MASTER_ADDR and MASTER_PORT, to an address of rank 0's node and a port that is free there, on all ranks, ")
}

// The batch script of docs/guides/deploy.md trains on two nodes without an MPI.
func TestSlurmWithoutMPI(t *testing.T) {
	s := newSlurm(t, 2)
	require.NoError(t, os.Symlink(build(t, "examples/loop/ranks"), s.file("train")))
	script, err := filepath.Abs("../../examples/deploy/train.sbatch")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := s.client(ctx, "sbatch", "--wait", "--ntasks-per-node=2", "--cpus-per-task=1", "--chdir="+s.place, "--output="+s.file("out"), script)
	c.Env = append(c.Env, "GOCCL_LOG=info")
	out, failed := c.CombinedOutput()
	said, err := os.ReadFile(s.file("out"))
	require.NoError(t, err, "%s", out)
	require.NoError(t, failed, "%s%s", out, said)
	require.Contains(t, string(said), "epoch 5: loss ")
	for rank := range 4 {
		require.Contains(t, string(said), fmt.Sprintf(" rank=%d ranks=4 transport=tcp", rank))
	}
}
