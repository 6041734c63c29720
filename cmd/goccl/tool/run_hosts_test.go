//go:build unix

package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// installs makes PATH a directory with programs that print a version.
func installs(t *testing.T, versions map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, version := range versions {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+version+"'\n"), 0o700))
	}
	t.Setenv("PATH", dir)
}

// --hosts starts nothing, and shows the command lines of the launchers that are installed, or of all.
func TestHosts(t *testing.T) {
	const openMPI, mpich, slurm = "mpirun.openmpi (OpenRTE) 4.1.4", "HYDRA build details:", "slurm-wlm 22.05.8"
	for _, c := range []struct {
		versions map[string]string
		args     string
		want     []string
		not      []string
	}{
		{nil, "--hosts a:2,b:2 ./train --lr 0.1 -n 9", []string{
			"--hosts a:2,b:2: goccl run starts processes of this machine only. Neither Open MPI's mpirun nor MPICH's mpiexec nor Slurm's srun is installed here.",
			"mpirun -n 4 --host a:2,b:2 ./train --lr 0.1 -n 9\n",
			"mpiexec -n 4 -hosts a:2,b:2 ./train --lr 0.1 -n 9\n",
			"srun -N 2 -n 4 --ntasks-per-node=2 -w a,b ./train --lr 0.1 -n 9\n",
		}, []string{"are installed start"}},
		{map[string]string{"mpirun.openmpi": openMPI, "mpirun": openMPI, "mpiexec": "mpiexec (Open MPI) 5.0.1"}, "--hosts=a:2,b -n 3 ./train", []string{
			"Here is how the launchers that are installed start this program there:",
			"mpirun.openmpi -n 3 --host a:2,b:1 ./train\n",
		}, []string{"mpiexec", "srun"}},
		{map[string]string{"mpirun": mpich, "mpiexec": mpich}, "--hosts n1.x,10.0.0.2 -- ./train", []string{
			"mpiexec -n 2 -hosts n1.x:1,10.0.0.2:1 ./train\n",
		}, []string{"mpirun", "srun"}},
		{map[string]string{"srun": slurm}, "--hosts a:2,b:1 ./train it's", []string{
			`printf '%s\n' a a b >hosts && SLURM_HOSTFILE=hosts srun -n 3 --distribution=arbitrary ./train 'it'\''s'` + "\n",
		}, []string{"mpirun", "mpiexec"}},
	} {
		installs(t, c.versions)
		text := failed(t, 2, append([]string{"run"}, strings.Fields(c.args)...)...)
		for _, want := range c.want {
			require.Contains(t, text, want)
		}
		for _, not := range c.not {
			require.NotContains(t, text, not)
		}
		for line := range strings.Lines(betweenNodes) {
			require.Contains(t, text, strings.TrimSpace(line))
		}
	}
	for line, want := range map[string]string{
		"--hosts a:2":            "the program is missing, as in goccl run --hosts a:2 ./train",
		"--hosts a:2 -n 3 true":  "-n 3 and --hosts a:2 contradict each other: the hosts have 2 ranks",
		"--hosts a:0 true":       `--hosts: want hosts with their numbers of ranks, such as a:2,b:2, but got "a:0"`,
		"--hosts a:2,,b true":    `but got "a:2,,b"`,
		"--hosts a;reboot true":  `but got "a;reboot"`,
		"--hosts a:two,b:1 true": `but got "a:two,b:1"`,
	} {
		require.Contains(t, failed(t, 2, append([]string{"run"}, strings.Fields(line)...)...), want, line)
	}
}
