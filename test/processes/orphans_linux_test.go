package processes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// orphanScript starts program $0 as a rank and remains its parent. $2 names the variable that has the rank. In
// directory $1 it writes the rank's output and, last, its process id.
const orphanScript = `eval "r=\$$2"; "$0" >"$1/out-$r" 2>&1 & echo $! >"$1/new-$r"; mv "$1/new-$r" "$1/pid-$r"; wait`

// torchrunScript is a launcher that sets torchrun's variables.
const torchrunScript = `for r in 0 1; do RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29501 ` +
	`TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_RUN_ID=orphans-$$ /bin/sh -c "$2" "$0" "$1" RANK & done; wait`

// Ranks whose launcher is killed fail soon, by an error that names it, and end by themselves. Those that were told
// not to watch it go on.
func TestLauncherKilled(t *testing.T) {
	t.Run("torchrun", func(t *testing.T) {
		killLauncher(t, true, "sh", "/bin/sh", "-c", torchrunScript, program(t), t.TempDir(), orphanScript)
	})
	t.Run("torchrun, not watched", func(t *testing.T) {
		killLauncher(t, false, "sh", "/bin/sh", "-c", torchrunScript, program(t), t.TempDir(), orphanScript)
	})
	t.Run("Open MPI", func(t *testing.T) {
		command, err := exec.LookPath("mpirun.openmpi")
		if err != nil {
			t.Skip("it is not installed")
		}
		killLauncher(t, true, "mpirun.openmpi", command, "--allow-run-as-root", "--oversubscribe", "-n", "2",
			"/bin/sh", "-c", orphanScript, program(t), t.TempDir(), "OMPI_COMM_WORLD_RANK")
	})
}

// killLauncher starts two ranks by a command whose arguments have the ranks' directory behind this program.
func killLauncher(t *testing.T, isWatched bool, name string, command ...string) {
	t.Helper()
	dir := ""
	for i, argument := range command {
		if argument == program(t) {
			dir = command[i+1]
		}
	}
	c := exec.Command(command[0], command[1:]...)
	c.Env = append(clean(os.Environ()), failingVariable+"=endless -1 0", fmt.Sprint("GOCCL_WATCH_LAUNCHER=", isWatched))
	ended := launch(t, c)
	var pids []int
	for rank := range 2 {
		text := awaitFile(t, filepath.Join(dir, fmt.Sprint("pid-", rank)), "\n")
		pid, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		pids = append(pids, pid)
	}
	output := func(rank int) string { return filepath.Join(dir, fmt.Sprint("out-", rank)) }
	awaitFile(t, output(0), "second 0\n")
	awaitFile(t, output(1), "second 0\n")
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	for rank, pid := range pids {
		if !isWatched {
			before, _ := os.ReadFile(output(rank))
			awaitFile(t, output(rank), fmt.Sprintf("second %d\n", strings.Count(string(before), "\n")+2))
			continue
		}
		awaitFile(t, output(rank), fmt.Sprintf("its launcher, %s (pid %d), has ended; GOCCL_WATCH_LAUNCHER=false", name, c.Process.Pid))
		for late := time.Now().Add(patience); syscall.Kill(pid, 0) == nil && time.Now().Before(late); {
			time.Sleep(10 * time.Millisecond) // the system sends no notification
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("rank %d goes on: %s", rank, stat)
		}
	}
}

// awaitFile returns what a file has once it has a text.
func awaitFile(t *testing.T, path, text string) string {
	t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		has, _ := os.ReadFile(path) // it may not exist yet
		if strings.Contains(string(has), text) {
			return string(has)
		}
		if time.Now().After(late) {
			t.Fatalf("%s does not get %q: %q", path, text, has)
		}
	}
}
