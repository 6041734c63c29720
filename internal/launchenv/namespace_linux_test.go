package launchenv

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two jobs of torchrun on one machine with separate networks have two keys, though torchrun
// sets the same variables for both.
func TestNamespacesTellJobsApart(t *testing.T) {
	keys := map[string]bool{}
	for _, flags := range []uintptr{0, syscall.CLONE_NEWNET, syscall.CLONE_NEWNET} {
		dir := t.TempDir()
		cmd := exec.Command("/proc/self/exe", "-test.run=^$")
		cmd.Env = append(os.Environ(), reportDir+"="+dir)
		for name, value := range torchrun {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if err := cmd.Run(); err != nil {
			t.Skipf("this user may not have a network namespace: %v", err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "rank*"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		text, err := os.ReadFile(files[0])
		require.NoError(t, err)
		var v verdict
		require.NoError(t, json.Unmarshal(text, &v))
		require.Empty(t, v.Err)
		keys[v.Job.Key] = true
	}
	// The second and third namespace may have had the same number, one after the other: they
	// did not exist at the same time.
	require.GreaterOrEqual(t, len(keys), 2)
}
