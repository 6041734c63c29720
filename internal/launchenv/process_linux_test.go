package launchenv

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process has ended if it is a zombie or gone, but not because it cannot be looked at.
func TestHasEnded(t *testing.T) {
	_, file, err := os.Pipe()
	require.NoError(t, err)
	defer file.Close()
	self, err := readProcess(os.Getpid())
	require.NoError(t, err)
	require.False(t, self.HasEnded())

	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	few := limit
	few.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	hasEnded := self.HasEnded()
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.False(t, hasEnded)

	other := self
	other.start = "1"
	require.True(t, other.HasEnded(), "its number is reused")
	c := exec.CommandContext(t.Context(), "cat")
	in, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	child, err := readProcess(c.Process.Pid)
	require.NoError(t, err)
	require.False(t, child.HasEnded())
	require.NoError(t, in.Close())
	for !child.HasEnded() { // it becomes a zombie
	}
	require.NoError(t, c.Wait())
	require.True(t, child.HasEnded())
}
