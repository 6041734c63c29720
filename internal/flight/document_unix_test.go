//go:build unix

package flight

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A document has the mode 0666 under the umask, and that of the document which it replaces.
func TestDocumentModes(t *testing.T) {
	dir := t.TempDir()
	d := Document{Version: Version, Job: "job", Writer: "rank 0"}
	defer syscall.Umask(syscall.Umask(0o027))
	for _, want := range []fs.FileMode{0o640, 0o600} {
		require.NoError(t, d.Write(dir))
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		info, err := os.Lstat(files[0])
		require.NoError(t, err)
		require.Equal(t, want, info.Mode())
		require.NoError(t, os.Chmod(files[0], 0o600))
	}
}
