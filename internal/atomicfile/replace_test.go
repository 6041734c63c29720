//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// writerVariable makes the test binary a process that replaces this file and stops within its
// write: it is killed, or goes on when its standard input ends.
const writerVariable = "TEST_ATOMICFILE_WRITER"

func TestMain(m *testing.M) {
	path := os.Getenv(writerVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	err := Replace(path, true, func(f *os.File) error {
		if _, err := f.WriteString("of the process"); err != nil {
			return err
		}
		fmt.Println("writes")
		_, err := io.ReadAll(os.Stdin)
		return err
	})
	if err != nil {
		panic(err)
	}
}

func writes(text string) func(*os.File) error {
	return func(f *os.File) error { _, err := f.WriteString(text); return err }
}

// replace writes a text to a file, and checks what it has then.
func replace(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, Replace(path, true, writes(text)))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

// A new file has the mode 0666 under the umask; a file that replaces another one has that one's.
func TestModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	defer syscall.Umask(syscall.Umask(0o027))
	replace(t, path, "new")
	require.Equal(t, fs.FileMode(0o640), mode(t, path))
	for _, old := range []fs.FileMode{0o600, 0o666, 0o444} {
		require.NoError(t, os.Chmod(path, old))
		replace(t, path, fmt.Sprint(old))
		require.Equal(t, old, mode(t, path))
	}
}

// A link stays, and the file that it leads to is replaced; a link that leads nowhere is refused.
func TestLinks(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	target, link, dangling := filepath.Join(other, "target"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
	replace(t, target, "old")
	require.NoError(t, os.Symlink(target, filepath.Join(dir, "middle")))
	require.NoError(t, os.Symlink("middle", link))
	require.NoError(t, os.Symlink("nothing", dangling))
	replace(t, link, "new")
	require.Equal(t, fs.ModeSymlink, mode(t, link).Type())
	got, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "new", string(got))

	require.ErrorContains(t, Replace(dangling, true, writes("x")), dangling+" is a link that leads to no file")
	require.Equal(t, []string{"dangling", "link", "middle"}, names(t, dir))
	require.Equal(t, []string{"target"}, names(t, other))
}

// Errors name the file, and not the temporary one; a limit of the process has its remedy.
func TestErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	err := Replace(path, false, func(f *os.File) error { return &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.EFBIG} })
	require.EqualError(t, err, "write "+path+": file too large (see ulimit -f)")
	require.EqualError(t, Replace(path+"/none", false, writes("x")), "open "+path+"/none: no such file or directory")
}

// What is no regular file is refused and stays.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, folder := filepath.Join(dir, "pipe"), filepath.Join(dir, "folder")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Mkdir(folder, 0o700))
	for _, path := range []string{pipe, folder} {
		require.ErrorContains(t, Replace(path, false, writes("x")), path+" is not a regular file")
	}
	require.Equal(t, fs.ModeNamedPipe, mode(t, pipe).Type())
	require.Equal(t, []string{"folder", "pipe"}, names(t, dir))
}

// A name may be as long as the system allows.
func TestLongNames(t *testing.T) {
	replace(t, filepath.Join(t.TempDir(), strings.Repeat("c", 255)), "new")
}

// A write that fails leaves the file as it was, and nothing else.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	replace(t, path, "old")
	broken := errors.New("broken")
	require.ErrorIs(t, Replace(path, true, func(f *os.File) error { return errors.Join(writes("new")(f), broken) }), broken)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(got))
	require.Equal(t, []string{"c"}, names(t, dir))
}

// start starts a process that writes a file, and returns when it does.
func start(t *testing.T, path string) (*exec.Cmd, io.Closer) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), writerVariable+"="+path)
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = io.ReadFull(out, make([]byte, len("writes")))
	require.NoError(t, err)
	return c, in
}

// The temporary file of a process that was killed is removed by the next Replace of the same file,
// and by no other; that of a process that lives is left, and becomes the file in the end.
func TestTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	killed, _ := start(t, path)
	living, in := start(t, path)
	require.Len(t, names(t, dir), 2)
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())

	replace(t, filepath.Join(dir, "other"), "other")
	require.Len(t, names(t, dir), 3)
	replace(t, path, "new")
	require.Len(t, names(t, dir), 3, "c, other, and that of the living process")

	require.NoError(t, in.Close())
	require.NoError(t, living.Wait())
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "of the process", string(got))
	require.Equal(t, []string{"c", "other"}, names(t, dir))
}

// A Replace that takes a file for an abandoned one before its writer has locked it removes it; the
// writer makes another.
func TestRemovedBeforeTheLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	calls := 0
	defer func() { beforeLock = func(string) {} }()
	beforeLock = func(string) {
		if calls++; calls == 1 {
			removeAbandoned(dir, prefixOf(path))
			require.Empty(t, names(t, dir))
		}
	}
	replace(t, path, "new")
	require.Equal(t, 2, calls)
	require.Equal(t, []string{"c"}, names(t, dir))
}

// A Replace that has locked a file before its writer, to remove it, makes the writer take another.
func TestLockedByRemoval(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	calls := 0
	defer func() { beforeLock = func(string) {} }()
	var remover *os.File
	beforeLock = func(name string) {
		if calls++; calls == 1 {
			var err error
			remover, err = os.Open(name)
			require.NoError(t, err)
			require.NoError(t, lock(remover))
		}
	}
	replace(t, path, "new")
	require.Equal(t, 2, calls)
	require.NoError(t, os.Remove(remover.Name()))
	require.NoError(t, remover.Close())
}

// A temporary file that becomes a pipe, or a link to one, before it is opened stops no Replace: nobody
// has the other end.
func TestTemporaryFileThatIsReplaced(t *testing.T) {
	defer func() { beforeOpen = func(string) {} }()
	for name, put := range map[string]func(path string) error{
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path string) error {
			return errors.Join(syscall.Mkfifo(path+"2", 0o600), os.Symlink(path+"2", path))
		},
	} {
		path, puts := filepath.Join(t.TempDir(), "c"), 0
		abandoned := filepath.Join(filepath.Dir(path), prefixOf(path)+"0")
		require.NoError(t, os.WriteFile(abandoned, nil, 0o600))
		beforeOpen = func(opened string) {
			require.Equal(t, abandoned, opened)
			require.NoError(t, errors.Join(os.Remove(opened), put(opened)))
			puts++
		}
		replace(t, path, "new")
		require.Equal(t, 1, puts, name)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "new", string(got))
	}
}
