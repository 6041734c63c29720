//go:build unix

package userfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A regular file of this user is read; a link, a pipe, a directory and another user's file are refused with their kind, and the
// other end of a pipe notices nothing.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	text, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	_, err = Read(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "a\x1b[2Jpipe")
	require.NoError(t, os.Symlink(path, link))
	_, err = Read(link)
	require.ErrorContains(t, err, `link": it is a symbolic link, and only regular files are read`)
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = Read(pipe) // no writer has it open
	require.ErrorContains(t, err, `a\x1b[2Jpipe": it is a named pipe`)
	_, err = Read(dir)
	require.ErrorContains(t, err, "it is a directory")
	_, err = Read(os.DevNull)
	require.ErrorContains(t, err, "it is a device")
	_, err = syscall.Open(pipe, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	require.ErrorIs(t, err, syscall.ENXIO, "nobody reads the pipe")
}

// A file that becomes a link or a pipe between the look at it and its opening is refused as well.
func TestReadOfAFileThatIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	defer func() { looked = func() {} }()
	for name, replace := range map[string]func() error{
		"link": func() error { return os.Symlink(other, path) },
		"pipe": func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		for _, p := range []string{path, other} {
			require.NoError(t, os.WriteFile(p, []byte("text"), 0o600))
		}
		looked = func() {
			require.NoError(t, os.Remove(path))
			require.NoError(t, replace())
		}
		_, err := Read(path)
		require.Error(t, err, name)
		require.NoError(t, os.Remove(path))
	}
}

// Another user's file is refused, by the ids of both users.
func TestReadOfAnotherUsersFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes files of other users")
	}
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o644))
	require.NoError(t, os.Chown(path, 1234, -1))
	_, err := Read(path)
	require.ErrorContains(t, err, "it belongs to user 1234, and this process to user 0")
}
