package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A ./ccl.yaml that is there and is no configuration is not ignored, nor waited for.
func TestConfigThatIsNoFile(t *testing.T) {
	t.Setenv("GOCCL_CONFIG", "")
	t.Chdir(t.TempDir())
	require.NoError(t, os.Symlink("gone.yaml", "ccl.yaml"))
	_, err := Find()
	require.EqualError(t, err, "ccl.yaml: it is a link to gone.yaml, which does not exist: correct or remove it")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorAs(t, err, new(*Error))

	require.NoError(t, os.Remove("ccl.yaml"))
	require.NoError(t, syscall.Mkfifo("ccl.yaml", 0o600))
	_, err = Find()
	require.EqualError(t, err, "ccl.yaml: it is a pipe or a device: make it a file, or name it by GOCCL_CONFIG")
}

// A pipe that is named is read once, and all ranks of the process have what it held.
func TestConfigFromPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	t.Setenv("GOCCL_CONFIG", pipe)
	const ranks = 4
	errs := make(chan error, ranks)
	for range ranks {
		go func() {
			c, err := Find()
			if err == nil && c.Entries()[0] != "from_a_pipe" {
				err = errors.New("another configuration")
			}
			errs <- err
		}()
	}
	require.NoError(t, os.WriteFile(pipe, []byte("version: 1\nalgorithms: {from_a_pipe: {module: plain}}\n"), 0o600))
	for range ranks {
		require.NoError(t, <-errs)
	}
	_, err := Find()
	require.NoError(t, err, "a rank that comes late")
}

// Anchors that hold themselves are a mistake like other anchors.
func TestConfigThatHoldsItself(t *testing.T) {
	for _, text := range []string{"version: 1\ndefaults: &a {x: *a}\n", "version: 1\nalgorithms: &a\n  - *a\n", "&a [*a]\n"} {
		_, err := Parse("ccl.yaml", []byte(text))
		require.ErrorAs(t, err, new(*Error))
	}
}
