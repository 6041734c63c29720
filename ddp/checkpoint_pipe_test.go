//go:build unix

package ddp_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
)

// A checkpoint is a regular file: Load does not wait for the writer of a pipe, and Save does not
// replace one.
func TestCheckpointIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	errs, _, _ := load(t, path, smallOf, nil)
	for _, err := range append(errs, saves(t, path, 1)...) {
		var refused *ddp.CheckpointError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "is not a regular file")
		require.NotContains(t, err.Error(), "regular file (", "letters of a mode say little")
	}
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
}
