//go:build unix

package launcher

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/text"
)

// Variables of an outer launcher's ranks are removed; all others are kept.
func TestEnvironment(t *testing.T) {
	stays := []string{
		"PATH=/bin", "RANKING=1", "MY_RANK=2", "SLURM_JOB_ID=17", "SLURM_CPUS_PER_TASK=4", "GOCCL_CONFIG=a.yaml", "EMPTY=",
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_btl=self,vader", "PMIX_MCA_gds=hash", "MASTER_KEY=1",
	}
	goes := []string{
		"GOCCL_SHM_NAME=/a", "GOCCL_SHM_RANK=1", "GOCCL_SHM_SIZE=2", "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
		"TORCHELASTIC_RUN_ID=none", "MASTER_ADDR=h", "MASTER_PORT=1", "GROUP_RANK=0", "ROLE_RANK=0", "OMPI_COMM_WORLD_RANK=1",
		"OMPI_MCA_ess_base_jobid=1", "OMPI_MCA_orte_precondition_transports=1", "PMIX_SERVER_URI2=a", "PMIX_NAMESPACE=1", "PMIX_RANK=1", "PMI_RANK=1", "MPI_LOCALRANKID=1", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_NTASKS=2",
	}
	var both []string
	for i, v := range goes {
		both = append(both, v)
		if i < len(stays) {
			both = append(both, stays[i])
		}
	}
	require.Equal(t, stays, withoutRanks(both))
	require.Equal(t, []string{
		"GOCCL_SHM_NAME=/goccl-1", "GOCCL_SHM_SECRET=hush", "GOCCL_SHM_RANK=2", "GOCCL_SHM_SIZE=4",
		"RANK=2", "WORLD_SIZE=4", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=4",
	}, rankVariables("goccl-1", "hush", 2, 4, 2, 4))
}

// Variables override the environment, and are kept even if they are those of another launcher.
func TestVariables(t *testing.T) {
	job := Spec{
		Environment: []string{"PATH=/bin", "A=1", "MASTER_ADDR=h", "MASTER_PORT=1", "AB=3", "A=2"},
		Variables:   []string{"MASTER_PORT=2", "A=a=b", "NEW="},
	}
	require.Equal(t, []string{"PATH=/bin", "AB=3", "MASTER_PORT=2", "A=a=b", "NEW="}, job.environment())
	job = Spec{Environment: []string{"A=old", "B=1", "A=new", "C"}, Variables: []string{"V=old", "V=new", "B=2"}}
	require.Equal(t, []string{"A=new", "C", "V=new", "B=2"}, job.environment(), "the last entry counts")
	for _, name := range []string{"RANK", "LOCAL_WORLD_SIZE", "GOCCL_SHM_SECRET", "GOCCL_ERROR_FILE"} {
		require.True(t, SetsVariable(name), name)
	}
	for _, name := range []string{"RAN", "A", "MASTER_PORT", "GOMAXPROCS"} {
		require.False(t, SetsVariable(name), name)
	}
}

// A rank with one hyperthread runs two threads, unless the user has decided.
func TestProcessors(t *testing.T) {
	require.Equal(t, []string{"GOMAXPROCS=2"}, processors([]string{"PATH=/bin"}, []int{3}))
	require.Empty(t, processors([]string{"GOMAXPROCS=1"}, []int{3}))
	require.Empty(t, processors([]string{"PATH=/bin"}, []int{3, 4}))
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, nil, mode))
		return file
	}
	runs, data := write("runs", 0o700), write("data", 0o600)
	t.Setenv("PATH", dir)
	for program, want := range map[string]string{runs: runs, "runs": runs} {
		file, err := Find(program)
		require.NoError(t, err)
		require.Equal(t, want, file)
	}
	for program, status := range map[string]int{"missing": 127, dir + "/missing": 127, data: 126, dir: 126} {
		_, err := Find(program)
		var refused *RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, status, refused.ExitCode(), "%v", err)
		require.Contains(t, err.Error(), program)
		require.NotContains(t, err.Error(), "did you mean")
	}
}

// A program in the working directory, which is not in PATH, needs "./".
func TestFindInWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", t.TempDir())
	require.NoError(t, os.WriteFile("train", nil, 0o700))
	require.NoError(t, os.WriteFile("data", nil, 0o600))

	_, err := Find("train")
	require.EqualError(t, err, "train: there is no such program in PATH (did you mean ./train?)")
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 127, refused.ExitCode())
	_, err = Find("./train")
	require.NoError(t, err)
	for _, program := range []string{"data", "/train"} {
		_, err = Find(program)
		require.EqualError(t, err, program+": there is no such program")
	}
}

func TestEndedError(t *testing.T) {
	const term, kill = syscall.SIGTERM, syscall.SIGKILL
	e := &EndedError{
		First: 1, Blamed: []int{1}, Reporter: 1, Seen: 1, After: 1234567890, Grace: 5 * time.Second, Output: []string{"a", "b"}, OutputName: "standard error",
		Ranks: []Rank{
			{PID: 10, Signal: term, Asked: term}, {PID: 11, Exit: 3}, {PID: 12, Signal: term, Asked: term},
			{PID: 13, Signal: term, Asked: term}, {PID: 14, Exit: 1, Asked: term}, {PID: 15, Signal: kill, Asked: kill}, {PID: 16},
		},
	}
	require.EqualError(t, e, `rank 1 (pid 11) was the first to fail, after 1.235s: exit status 3
  the last that it wrote to standard error:
    a
    b
  ranks 0, 2, 3: ended by SIGTERM
  rank 4: ended after SIGTERM, with exit status 1
  rank 5: killed at the end of the grace period of 5s
  rank 6: ended before, with exit status 0`)
	require.Equal(t, 3, e.ExitCode())
	e.Output, e.Crash, e.Stack = nil, []string{"panic: no", "\tpanic: yes"}, &launchenv.Goroutine{}
	require.Contains(t, e.Error(), "exit status 3\n  panic: no\n  \tpanic: yes\n  ranks 0, 2, 3")
	own, runtime := launchenv.Frame{Function: "main.f", File: "/x/a.go", Line: 7}, launchenv.Frame{Function: "runtime.throw", File: "/go/panic.go", Line: 8}
	other := launchenv.Frame{Function: "main.g", File: "/x/a.go", Line: 8}
	e.Stack = &launchenv.Goroutine{Number: 34, Frames: slices.Concat([]launchenv.Frame{runtime}, slices.Repeat([]launchenv.Frame{own, own, other}, 6)), Creator: &own}
	require.Contains(t, e.Error(), "\n  \tpanic: yes"+strings.Repeat("\n    in main.f at a.go:7\n    in main.g at a.go:8", 5)+"\n    and 2 more\n    in goroutine 34, started in main.f at a.go:7\n  ranks 0, 2, 3",
		"a function that calls itself is shown once")
	e.Stack = &launchenv.Goroutine{Number: 1, Frames: []launchenv.Frame{runtime}}
	require.Contains(t, e.Error(), "\n  \tpanic: yes\n    in runtime.throw at panic.go:8\n  ranks 0, 2, 3", "there is nothing else")
	long := strings.Repeat("é", lineShown)
	e.Crash, e.Output = nil, []string{long, long + "x"}
	require.Contains(t, e.Error(), "\n    "+long+"\n    "+long+"...\n", "a line is cut")
	e.Ranks[1] = Rank{PID: 11, Signal: syscall.SIGSEGV}
	require.Equal(t, 139, e.ExitCode())
	require.Equal(t, 130, (&EndedError{First: -1, Signal: syscall.SIGINT}).ExitCode())
	require.Equal(t, "ranks 0-2, 4, 6, 7", text.Ranks([]int{0, 1, 2, 4, 6, 7}))
}
