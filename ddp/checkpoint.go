package ddp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// CheckpointError says why a checkpoint could not be written or was refused. All ranks get it; on rank 0 it
// wraps the cause; errors.Is finds fs.ErrNotExist on all.
type CheckpointError struct {
	Path   string
	Reason string
	Err    error // on rank 0, and fs.ErrNotExist on all
}

func (e *CheckpointError) Error() string {
	return fmt.Sprintf("ddp: checkpoint %s: %s", e.Path, e.Reason)
}

func (e *CheckpointError) Unwrap() error { return e.Err }

// Save writes a checkpoint: the parameters, the buffers ("buffer.0", ...), more tensors, such as an
// optimizer's, which have names of their own, and state, anything that encoding/json takes, such as the
// epoch and the step. Rank 0 writes what it has; all ranks call Save and get its error. The file replaces an
// older one at once, or not at all.
//
// The file has the safetensors format, which torch reads as well; its metadata has the version, a checksum
// and state.
func (r *Reducer[T]) Save(ctx context.Context, path string, state any, more ...Parameter[T]) error {
	if err := r.outsideJoin("save"); err != nil {
		return err
	}
	var failed *CheckpointError
	if r.comm.Rank() == 0 {
		tensors := r.tensors(more)
		text, err := json.Marshal(state)
		if err == nil {
			err = replaceFile(path, func(f *os.File) error { return writeTensors(f, tensors, text) })
		}
		if err != nil {
			failed = &CheckpointError{path, err.Error(), err}
		}
	}
	return r.outcome(ctx, path, failed, new([]byte))
}

// Load reads a checkpoint that Save wrote with the same parameters, buffers and more tensors, and gives its
// contents to all ranks. state is a pointer to what was saved, or nil. All ranks call Load; rank 0 reads the
// file, and all pass tensors of the same names and lengths. A file that is torn, foreign, of another
// version or of another model is a *CheckpointError, and changes no tensor.
func (r *Reducer[T]) Load(ctx context.Context, path string, state any, more ...Parameter[T]) error {
	if err := r.outsideJoin("load"); err != nil {
		return err
	}
	tensors := r.tensors(more)
	var read [][]T
	var failed *CheckpointError
	var text []byte
	if r.comm.Rank() == 0 {
		var err error
		if read, text, err = readFile(path, tensors); err != nil {
			failed = &CheckpointError{path, err.Error(), err}
		} else if state != nil {
			// What does not fit is found before any rank changes anything.
			if err := json.Unmarshal(text, state); err != nil {
				failed = &CheckpointError{path, "its state: " + err.Error(), err}
			}
		}
	}
	if err := r.outcome(ctx, path, failed, &text); err != nil {
		return err
	}
	for i, t := range tensors {
		if read != nil {
			copy(t.Data, read[i])
		}
		if err := ccl.Broadcast(ctx, r.comm, t.Data, 0); err != nil {
			return fmt.Errorf("ddp: %w", err)
		}
	}
	if state == nil || r.comm.Rank() == 0 {
		return nil
	}
	if err := json.Unmarshal(text, state); err != nil {
		return &CheckpointError{path, "its state: " + err.Error(), err}
	}
	return nil
}

// outsideJoin returns an error within Join, where ranks that are done make steps only.
func (r *Reducer[T]) outsideJoin(operation string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.joining {
		return &ccl.InvalidArgumentError{Operation: "ddp." + operation, Message: "a checkpoint within Join: call it before or after, with all ranks"}
	}
	return nil
}

// tensors returns what a checkpoint contains.
func (r *Reducer[T]) tensors(more []Parameter[T]) []Parameter[T] {
	all := slices.Clone(r.params)
	for i, b := range r.opts.Buffers {
		all = append(all, Parameter[T]{Name: fmt.Sprint(bufferPrefix, i), Data: b})
	}
	return append(all, more...)
}

// bufferPrefix begins the names of buffers.
const bufferPrefix = "buffer."

// outcome tells all ranks rank 0's error, or its text.
func (r *Reducer[T]) outcome(ctx context.Context, path string, failed *CheckpointError, text *[]byte) error {
	type told struct {
		Failed bool
		Absent bool // there is no such file
		Reason string
		Text   []byte
	}
	t := told{Text: *text}
	if failed != nil {
		t = told{Failed: true, Absent: errors.Is(failed, fs.ErrNotExist), Reason: failed.Reason}
	}
	// Without a timeout: rank 0 may read or write for long.
	if err := dist.BroadcastObject(&t, r.comm.GlobalRank(0), dist.WithGroup(r.group), dist.WithContext(ctx), dist.WithCallTimeout(-1)); err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	switch {
	case failed != nil:
		return failed
	case t.Absent:
		return &CheckpointError{Path: path, Reason: t.Reason, Err: fs.ErrNotExist}
	case t.Failed:
		return &CheckpointError{Path: path, Reason: t.Reason}
	}
	*text = t.Text
	return nil
}

// replaceFile writes a file that replaces an older one at once.
func replaceFile(path string, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
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
