package atomicfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Replace makes what write writes the contents of the file path, or returns an error and leaves the
// file as it was. The new file has the mode of the old one, or 0666 under the umask if there is
// none. If path is a link, the file that it leads to is replaced.
//
// A durable file is on the disk when Replace returns. A link that leads to no file, and what is no
// regular file, is refused.
func Replace(path string, isDurable bool, write func(*os.File) error) (err error) {
	path, old, err := resolve(path)
	if err != nil {
		return err
	}
	defer func() {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			p.Path = path // the temporary name says nothing
		}
		if errors.Is(err, syscall.EFBIG) {
			err = fmt.Errorf("%w (see ulimit -f)", err)
		}
	}()
	dir, prefix := filepath.Dir(path), prefixOf(path)
	removeAbandoned(dir, prefix)
	f, err := createLocked(filepath.Join(dir, prefix), old)
	if err != nil {
		return err
	}

	err = write(f)
	if err == nil && isDurable {
		err = f.Sync()
	}
	if runtime.GOOS == "windows" { // renames no open file
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	_ = f.Close() // ends the lock; the contents are written already
	if err == nil && isDurable {
		err = syncDirectory(dir)
	}
	return err
}

// ErrNoPath is the error of an empty path.
var ErrNoPath = errors.New("the path of the file is empty")

// resolve returns the file to replace, behind links, and what is known of it: nil if there is none.
func resolve(path string) (string, fs.FileInfo, error) {
	if path == "" {
		return "", nil, ErrNoPath
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	}

	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		link := path
		if path, err = filepath.EvalSymlinks(link); err != nil {
			return "", nil, fmt.Errorf("%s is a link that leads to no file: %w", link, err)
		}
		info, err = os.Lstat(path)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	return path, info, err
}

// prefixOf returns the beginning of the names of a file's temporary files.
func prefixOf(path string) string {
	return fmt.Sprintf(anyPrefix+"%.8x-", sha256.Sum256([]byte(filepath.Base(path))))
}

// beforeLock runs between the creation of a temporary file and its lock. Tests set it.
var beforeLock = func(string) {}

// errLocked is the error of lock for a file that another one has locked.
var errLocked = errors.New("the file is locked")

// createLocked creates a temporary file and locks it. old is the file that it will replace, or nil.
func createLocked(prefix string, old fs.FileInfo) (*os.File, error) {
	for {
		mode := fs.FileMode(0o666)
		if old != nil {
			mode = old.Mode().Perm()
		}

		f, err := os.OpenFile(fmt.Sprintf("%s%016x", prefix, rand.Uint64()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if old != nil {
			if err := f.Chmod(mode); err != nil { // without the umask
				return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
			}
		}

		beforeLock(f.Name())
		if !errors.Is(lock(f), errLocked) && isNamed(f) { // a system without locks removes nothing either
			return f, nil
		}
		_ = f.Close() // another Replace has taken it for an abandoned one and removes it
	}
}

// isNamed reports whether the name of f is still that of the same file.
func isNamed(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, named)
}

// beforeOpen runs between the look at a temporary file and its opening. Tests set it.
var beforeOpen = func(string) {}

// anyPrefix is the beginning of the names of all temporary files.
const anyPrefix = ".goccl-"

// RemoveAbandoned removes the temporary files in a directory whose processes have died in Replace.
func RemoveAbandoned(dir string) { removeAbandoned(dir, anyPrefix) }

// removeAbandoned removes the temporary files that nobody has locked. What it cannot read or remove
// it leaves.
func removeAbandoned(dir, prefix string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		beforeOpen(path) // others may put a link or a pipe there

		f, err := os.OpenFile(path, os.O_WRONLY|regularOnly, 0) // NFS locks no file that is read only
		if errors.Is(err, fs.ErrPermission) {
			f, err = os.OpenFile(path, os.O_RDONLY|regularOnly, 0)
		}
		if err != nil {
			continue
		}
		if lock(f) == nil {
			_ = os.Remove(f.Name())
		}
		_ = f.Close()
	}
}

// syncDirectory makes the name of a new file durable, where a directory can be synchronized.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // some systems do not open directories; the file is there
	}
	_ = d.Sync()
	return d.Close()
}
