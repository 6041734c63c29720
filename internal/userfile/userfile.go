// Package userfile reads files in directories that other users may write to.
//
// # Model
//
// Only a regular file of this user is read. A link may name any file, to open a pipe waits for its
// writer or wakes it, and another user's file says what that user likes. None of them is opened.
package userfile

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// looked is called between the look at a file and its opening. Tests replace the file there.
var looked = func() {}

// Read returns the contents of a regular file of this user. errors.Is finds fs.ErrNotExist if there
// is none; other errors quote the path, and say what else there is.
func Read(path string) ([]byte, error) {
	info, err := os.Lstat(path) // before it is opened, which a pipe or a device would notice
	if err == nil {
		err = check(info)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	looked()

	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil {
		err = check(info)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return io.ReadAll(f)
}

// check returns an error unless the file is regular and this user's.
func check(info fs.FileInfo) error {
	if kind := info.Mode().Type(); kind != 0 {
		return fmt.Errorf("it is a %s, and only regular files are read", cmp.Or(kinds[kind], "device"))
	}
	if owner, user := ownerOf(info), os.Geteuid(); owner != user {
		return fmt.Errorf("it belongs to user %d, and this process to user %d: copy it, or read it as that user", owner, user)
	}
	return nil
}

var kinds = map[fs.FileMode]string{fs.ModeSymlink: "symbolic link", fs.ModeDir: "directory", fs.ModeNamedPipe: "named pipe", fs.ModeSocket: "socket"}
