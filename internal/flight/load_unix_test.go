//go:build unix

package flight

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A directory that holds a link or a pipe in the place of a flight is refused with its name, which is quoted, and the pipe is not opened.
func TestLoadOpensRegularFilesOnly(t *testing.T) {
	for _, job := range []string{"job", "\x1b[2J"} {
		for kind, put := range map[string]func(dir, path string) error{
			"symbolic link": func(dir, path string) error {
				d := &Document{Version: Version, Job: "job", Size: 1, Writer: "rank 1"}
				target := filepath.Join(dir, "elsewhere")
				if err := d.Write(target); err != nil {
					return err
				}
				return os.Symlink(filepath.Join(target, "flight-job-rank-1.json"), path)
			},
			"named pipe": func(_, path string) error { return syscall.Mkfifo(path, 0o600) },
		} {
			dir := t.TempDir()
			require.NoError(t, put(dir, filepath.Join(dir, "flight-"+job+"-rank-0.json")))
			_, _, err := Load(dir)
			require.ErrorContains(t, err, "it is a "+kind)
			require.NotContains(t, err.Error(), "\x1b")
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "flight-\x1b[2J.json"), []byte("[]"), 0o600))
	_, _, err := Load(dir)
	require.ErrorContains(t, err, "no flight record")
	require.NotContains(t, err.Error(), "\x1b")
}
