package ddp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/failure"
)

// checkpointExtension ends the names that Latest looks at.
const checkpointExtension = ".safetensors"

// maxName is longer than a name in a directory can be, in bytes.
const maxName = 1024

// Latest returns the newest file of a directory that Save or SaveAsync has written and that is
// whole, by the time of its last change, then by its name. It looks at *.safetensors, and reads a
// file to its end.
//
// passed says why newer files were passed over: they are torn or changed, or of another tool.
//
// The error is fs.ErrNotExist if there is no checkpoint, and another *CheckpointError if there are
// some and none is whole.
func Latest(dir string) (path string, passed []*CheckpointError, err error) {
	files, err := newestFirst(dir)
	if err != nil {
		return "", nil, &CheckpointError{dir, err.Error(), err}
	}
	var broken []error
	for _, path := range files {
		if filepath.Ext(path) != checkpointExtension {
			continue
		}

		c, err := readFile(path, func(*header) (map[string]elements, error) { return nil, nil })
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			continue
		case err != nil:
			broken = append(broken, fmt.Errorf("%s: %w", filepath.Base(path), err))
		case c.metadata[versionKey] != "":
			return path, passed, nil
		default:
			err = errors.New("Save has not written it")
		}
		passed = append(passed, &CheckpointError{path, err.Error(), err})
	}

	if broken != nil {
		err := fmt.Errorf("none of its files is whole: %w", errors.Join(broken...))
		return "", passed, &CheckpointError{dir, err.Error(), err}
	}
	return "", passed, &CheckpointError{dir, "it has no checkpoint", fs.ErrNotExist}
}

// LoadLatest is Load of the file that Latest finds on rank 0, which it returns. The directory has
// the same files on all ranks; Options.Logger of rank 0 gets a warning for each that was passed
// over.
//
// Its error is fs.ErrNotExist on all ranks if there is no checkpoint yet:
//
//	path, err := model.LoadLatest(ctx, dir, &progress)
//	if err != nil && !errors.Is(err, fs.ErrNotExist) {
//		return err
//	}
func (r *Reducer) LoadLatest(ctx context.Context, dir string, state any, more ...Tensor) (path string, err error) {
	name, err := r.agreeOnLatest(ctx, dir)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	return path, r.Load(ctx, path, state, more...)
}

// agreeOnLatest returns the name of the file that rank 0 finds.
func (r *Reducer) agreeOnLatest(ctx context.Context, dir string) (string, error) {
	if err := r.beginCheckpoint("LoadLatest"); err != nil {
		return "", err
	}
	defer r.comm.Release()
	const key = "ddp.LoadLatest"
	if err := r.awaitRanks(ctx, key); err != nil {
		return "", err
	}

	name := make([]byte, maxName)
	var failed error
	if err := r.workTogether(ctx, key+": rank 0 reads", func() {
		if r.comm.Rank() == 0 {
			failed = r.findLatest(dir, name)
		}
	}); err != nil {
		return "", err
	}
	if err := r.agreeOnFile(ctx, key, dir, failed, nil); err != nil {
		return "", err
	}

	if err := ccl.Broadcast(ctx, r.comm, name, 0, ccl.WithLabel(key), ccl.WithKey(key)); err != nil {
		return "", inCall(err)
	}
	name = bytes.TrimRight(name, "\x00")
	if len(name) == 0 {
		return "", &CheckpointError{dir, "it has no checkpoint", failure.Share(fs.ErrNotExist, r.group.Ranks())}
	}
	return string(name), nil
}

// findLatest sets name to that of the file that Latest finds, and leaves it if there is none.
func (r *Reducer) findLatest(dir string, name []byte) error {
	path, passed, err := Latest(dir)
	if r.opts.Logger != nil {
		for _, p := range passed {
			r.opts.Logger.Warn("a checkpoint was passed over", "path", p.Path, "reason", p.Reason)
		}
	}
	if err == nil {
		copy(name, filepath.Base(path))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return errors.Unwrap(err) // the caller names dir
	}
	return nil
}

// newestFirst returns the regular files of a directory, without hidden ones. Of two with the same
// time and names of the same kind, that with the higher number comes first.
func newestFirst(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name())) // behind a link
		if err == nil && info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, info)
		}
	}

	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), len(b.Name())-len(a.Name()), strings.Compare(b.Name(), a.Name()))
	})
	for _, f := range files {
		paths = append(paths, filepath.Join(dir, f.Name()))
	}
	return paths, nil
}

// isCheckpoint reports whether Save has written a file, and to its end.
func isCheckpoint(path string) bool {
	isOwn := false
	_, _ = readFile(path, func(h *header) (map[string]elements, error) {
		isOwn = h.metadata[versionKey] != ""
		return nil, errors.New("no more is read")
	})
	return isOwn
}
