package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// start runs the program as one rank of a job.
func start(t *testing.T, name, memory string, rank, ranks int) (cmd *exec.Cmd, out, errs *strings.Builder) {
	t.Helper()
	out, errs = &strings.Builder{}, &strings.Builder{}
	cmd = exec.CommandContext(t.Context(), os.Args[0], strconv.Itoa(ranks), memory, "mine", "processes", "0.5", "50", "20", "0", "4", "20004")
	cmd.Env = append(os.Environ(), asProgram+"=1", "GOCCL_SHM_NAME="+name,
		fmt.Sprintf("GOCCL_SHM_RANK=%d", rank), fmt.Sprintf("GOCCL_SHM_SIZE=%d", ranks))
	cmd.Stdout, cmd.Stderr = out, errs
	require.NoError(t, cmd.Start())
	return cmd, out, errs
}

func TestProcesses(t *testing.T) {
	const ranks = 3
	for _, memory := range []string{"private", "alloc"} {
		name := "/goccl-test-" + rand.Text()

		var ends []func()
		for rank := range ranks {
			cmd, out, errs := start(t, name, memory, rank, ranks)
			ends = append(ends, func() {
				require.NoError(t, cmd.Wait(), errs)
				if rank == 0 {
					requireRows(t, out.String(), "processes", ranks, 0, 4, 20004)
				} else {
					require.Empty(t, out.String(), "rank 0 prints for all")
				}
			})
		}

		for _, end := range ends {
			end()
		}
		require.Empty(t, inMemory(t, name))
	}
}

// A rank that gets SIGTERM while it waits for others removes the job's memory.
func TestAskedToEnd(t *testing.T) {
	name := "/goccl-test-" + rand.Text()
	cmd, _, errs := start(t, name, "private", 0, 2)
	require.Eventually(t, func() bool { return len(inMemory(t, name)) > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	var failed *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &failed)
	require.Equal(t, 1, failed.ExitCode())
	require.Contains(t, errs.String(), "goccl_allreduce: ")
	require.Empty(t, inMemory(t, name))
}

// inMemory returns the files of a job.
func inMemory(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob("/dev/shm/*" + name[1:] + "*")
	require.NoError(t, err)
	return files
}
