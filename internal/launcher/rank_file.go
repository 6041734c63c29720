package launcher

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// fullFiles is how many full files of an output remain beside the one that is written.
const fullFiles = 3

// rankFile is a file of one output of a rank.
type rankFile struct {
	*os.File
	name string
	size int64
	most int64       // see Files.Bytes
	lose func(error) // nil: what cannot be written is an error
}

func newFile(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o666)
}

// write appends to the file. A full one is replaced at the end of a line.
func (f *rankFile) write(p []byte) (err error) {
	for len(p) > 0 {
		part, isFull := f.next(p)
		n, failed := f.Write(part)
		if path, ok := errors.AsType[*fs.PathError](failed); ok {
			path.Path = f.name // it may have been opened by another
		}
		if f.size += int64(n); isFull {
			failed = cmp.Or(failed, f.replace())
		}
		err, p = cmp.Or(err, failed), p[len(part):]
	}

	if err != nil && f.lose != nil {
		f.lose(err)
		return nil
	}
	return err
}

// next returns as much of p as the file gets, and whether it is full then.
func (f *rankFile) next(p []byte) (part []byte, isFull bool) {
	size := f.size + int64(len(p))
	if f.most == 0 || size < f.most {
		return p, false
	}
	start := max(0, f.most-f.size-1) // a line that ends there is the last
	if end := bytes.IndexByte(p[start:], '\n') + 1; end > 0 {
		return p[:int(start)+end], true
	}
	return p, size >= f.most+maxLine
}

// replace renames the file and older ones, and starts a new one. If that fails, the file is written
// on, until it has grown by as much again.
func (f *rankFile) replace() error {
	f.size = 0
	next, err := newFile(f.name + ".new")
	for i := fullFiles; i > 0 && err == nil; i-- {
		if err = os.Rename(f.numbered(i-1), f.numbered(i)); errors.Is(err, fs.ErrNotExist) {
			err = nil // there are not so many yet
		}
	}

	if err == nil {
		err = os.Rename(next.Name(), f.name)
	}
	if err != nil {
		if next != nil {
			_ = errors.Join(next.Close(), os.Remove(next.Name())) // err says why
		}
		return err
	}
	err = f.Close()
	f.File = next
	return err
}

// numbered returns the name of a full file, of which the first is the latest; 0 is the one that is
// written.
func (f *rankFile) numbered(i int) string {
	if i == 0 {
		return f.name
	}
	return fmt.Sprintf("%s.%d", f.name, i)
}
