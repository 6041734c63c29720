//go:build unix

package launchenv

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A link or a pipe in the place of a rank's report or result is refused, and the pipe is not opened.
func TestReportsAreRegularFiles(t *testing.T) {
	dir := t.TempDir()
	path, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for path, kind := range map[string]string{link: "symbolic link", pipe: "named pipe"} {
		_, err := ReadReport(path)
		require.ErrorContains(t, err, "it is a "+kind)
		_, err = ReadResult(path)
		require.ErrorContains(t, err, "it is a "+kind)
	}
}
