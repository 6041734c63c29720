package launcher

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

func init() {
	// Rank 1 writes without end; the others wait for it, for some seconds. Each first writes its process id
	// to a file in a directory.
	programs["talk"] = func(args []string) {
		if err := dist.Spawn(func(_ context.Context, rank int) error {
			if err := os.WriteFile(filepath.Join(args[0], fmt.Sprint(rank)), []byte(fmt.Sprint(os.Getpid())), 0o666); err != nil {
				return err
			}
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			for rank == 1 {
				fmt.Println("all is well")
			}
			return dist.Barrier(dist.WithCallTimeout(3 * time.Second))
		}); err != nil {
			log.Fatal(err)
		}
	}
}

// If ranks wait for one whose output is not read, the error says so first.
func TestUnreadOutput(t *testing.T) {
	for want, isStopped := range map[string]bool{"standard output has not been read": false, "the launcher was stopped": true} {
		t.Run(want, func(t *testing.T) {
			dir := t.TempDir()
			c := command("launcher", "3", "talk", dir)
			out, err := c.StdoutPipe()
			require.NoError(t, err)
			errs, err := c.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, c.Start())
			defer c.Process.Kill()
			output := bufio.NewReader(out)
			_, err = output.ReadString('\n')
			require.NoError(t, err)

			if isStopped {
				go io.Copy(io.Discard, output)
				require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
				awaitState(t, filepath.Join(dir, "0"), "Z") // and the launcher cannot wait for it
				require.NoError(t, c.Process.Signal(syscall.SIGCONT))
			} else {
				awaitState(t, filepath.Join(dir, "1"), "") // the launcher has ended it, and blamed it before
				go io.Copy(io.Discard, output)
			}
			text, err := io.ReadAll(errs)
			require.NoError(t, err)
			require.Error(t, c.Wait())
			require.Regexp(t, "(?m)^"+want+` for \d[\d.]*s, and rank 1 \(pid \d+\) was waited for in vain: the job failed after `, string(text))
		})
	}
}

// awaitState waits until the process whose number is in a file has a state; "" if it is gone.
func awaitState(t *testing.T, file, state string) {
	t.Helper()
	pid, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now := statusOf(number(string(pid)), "State")
		return strings.HasPrefix(now, state) && (now == "") == (state == "")
	}, time.Minute, 10*time.Millisecond)
}
