package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func init() {
	// A launcher whose children all orphans become, as those of process 1 do.
	programs["subreaper"] = func(args []string) {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			panic(err)
		}
		programs["launcher"](args)
	}
	programs["shell"] = func(args []string) {
		panic(unix.Exec("/bin/sh", append([]string{"sh", "-c"}, args...), os.Environ()))
	}
}

// Orphans of ranks that run are waited for, in whatever group they are.
func TestOrphansOfRunningRanks(t *testing.T) {
	const orphans = 16
	seen := filepath.Join(t.TempDir(), "seen")
	launcher := command("subreaper", "1", "shell", `for i in $(seq 16); do (/usr/bin/setsid /bin/sh -c 'echo >>"$0"' "$0" &); done; exec sleep 1000`, seen)
	require.NoError(t, launcher.Start())
	defer func() {
		require.NoError(t, launcher.Process.Signal(unix.SIGTERM))
		require.Error(t, launcher.Wait())
	}()

	require.Eventually(t, func() bool { text, _ := os.ReadFile(seen); return len(text) == orphans }, 30*time.Second, 5*time.Millisecond)
	zombies := func() (pids []string) {
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", launcher.Process.Pid))
		require.NoError(t, err)
		require.NotEmpty(t, lists)
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for _, pid := range strings.Fields(string(text)) {
				if strings.HasPrefix(statusOf(number(pid), "State"), "Z") {
					pids = append(pids, pid)
				}
			}
		}
		return pids
	}
	require.Eventually(t, func() bool { return len(zombies()) == 0 }, 30*time.Second, 5*time.Millisecond)
}
