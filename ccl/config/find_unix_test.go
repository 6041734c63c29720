//go:build unix

package config

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A working directory that this user may not search is no mistake of a ccl.yaml.
func TestUnsearchableDirectory(t *testing.T) {
	const variable = "TEST_GOCCL_UNSEARCHABLE"
	dir := os.Getenv(variable)
	if dir == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestUnsearchableDirectory$")
		c.Env = append(os.Environ(), variable+"="+t.TempDir(), "GOCOVERDIR=")
		text, err := c.CombinedOutput()
		require.NoError(t, err, "%s", text)
		return
	}

	require.NoError(t, os.Chdir(dir))
	require.NoError(t, os.Chmod(dir, 0))
	if os.Getuid() == 0 { // who may search all
		require.NoError(t, syscall.Setuid(65534))
	}
	_, err := Find()
	require.ErrorIs(t, err, fs.ErrPermission)
	require.EqualError(t, err, "working directory: this process may not search it for ccl.yaml: start it in another one, or name a configuration by GOCCL_CONFIG")
	t.Setenv("GOCCL_CONFIG", "/dev/null")
	_, err = Find()
	require.NotErrorIs(t, err, fs.ErrPermission)
}
