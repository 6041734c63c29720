package ddp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/goccl/goccl/internal/atomicfile"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/jsonfloat"
)

// SaveWork is a checkpoint that rank 0 writes while training goes on. SaveAsync begins one.
type SaveWork struct {
	reducer *Reducer
	path    string
	written chan struct{} // closed when this rank has nothing more to write
	failed  error         // of this rank, once written is closed

	ended bool // err is known
	err   error
}

// SaveAsync is Save that returns as soon as rank 0 has a copy of what the file will have, which a
// goroutine writes while training goes on (async_save of torch).
//
// Wait of the SaveWork returns the error of writing. A program that does not call it gets the error
// from the next Save, SaveAsync, Load, LoadLatest or Join, which wait until the file is written,
// return its error on all ranks, and do nothing else then. Close of rank 0 waits as well.
//
// A program that ends before writes nothing: the file before stays. Rank 0 needs memory for the
// copy. Errors that are known before it writes are those of Save.
func (r *Reducer) SaveAsync(ctx context.Context, path string, state any, more ...Tensor) (*SaveWork, error) {
	var text []byte
	var tensors []Tensor
	err := r.save(ctx, "SaveAsync", "rank 0 copies", path, func(states []Tensor) (err error) {
		if text, err = jsonfloat.Encode(state); err != nil {
			return fmt.Errorf("the state: %w", err)
		}

		tensors = r.copyTensors(r.tensors(states, more))
		_, err = entries(tensors)
		return err
	})
	if err != nil {
		return nil, err
	}

	w := &SaveWork{reducer: r, path: path, written: make(chan struct{})}
	interleave.Go(func() {
		if r.comm.Rank() == 0 {
			w.failed = r.opts.writeCheckpoint(path, text, tensors)
		}
		interleave.Step()
		close(w.written)
	})
	r.saving = w
	return w, nil
}

// Wait returns the error of the checkpoint once it is written. All ranks call it, between steps,
// and get the same error.
//
// It has the errors of Save within Join, between Ready and Wait, and after the end. A later Wait,
// and one after a call that has waited, returns the error again.
func (w *SaveWork) Wait(ctx context.Context) error {
	if w.ended {
		return w.err
	}
	r := w.reducer
	if err := r.beginCheckpoint("SaveWork.Wait"); err != nil {
		return err
	}
	defer r.comm.Release()
	return r.awaitRanks(ctx, "ddp.SaveWork.Wait")
}

// endSaving waits for the checkpoint that SaveAsync has begun, and returns its error on all ranks,
// once.
func (r *Reducer) endSaving(ctx context.Context) error {
	w := r.saving
	if w == nil {
		return nil
	}
	if err := r.workTogether(ctx, "ddp.SaveAsync: rank 0 writes", func() { interleave.Receive(w.written) }); err != nil {
		return err
	}
	w.err = r.agreeOnFile(ctx, "ddp.SaveAsync", w.path, w.failed, nil)
	r.saving, w.ended = nil, true
	return w.err
}

// abandonSaving waits until this rank has written, when no call connects it with others any more,
// and returns its own error.
func (r *Reducer) abandonSaving() error {
	w := r.saving
	if w == nil {
		return nil
	}

	interleave.Receive(w.written)
	r.saving = nil
	if r.comm.Rank() == 0 {
		w.ended = true
	}
	if w.failed != nil {
		w.err = &CheckpointError{w.path, w.failed.Error(), w.failed}
	}
	return w.err
}

// copyTensors returns tensors in memory of their own. Those that were gathered have it already.
func (r *Reducer) copyTensors(tensors []Tensor) []Tensor {
	isGathered := map[string]bool{}
	for _, t := range r.states {
		isGathered[t.name] = r.opts.Shard
	}

	for i, t := range tensors {
		if t.elements != nil && !isGathered[t.name] {
			tensors[i].elements = t.elements.fresh()
			tensors[i].elements.copyFrom(t.elements)
		}
	}
	return tensors
}

// writeCheckpoint writes a file, and removes older ones so that KeepCheckpoints remain.
func (o *Options) writeCheckpoint(path string, state []byte, tensors []Tensor) error {
	err := atomicfile.Replace(path, true, func(f *os.File) error {
		return cmp.Or(writeTensors(f, tensors, state, o.LogicalShards), makeNewest(f.Name(), filepath.Dir(path)))
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: make the directory %s", err, filepath.Dir(path))
	}
	if err != nil || o.KeepCheckpoints < 1 {
		return err
	}
	return removeOlder(path, o.KeepCheckpoints)
}

// makeNewest makes a file newer than the checkpoints of a directory, also if a clock was set back
// since they were written: Latest would return one of them.
func makeNewest(file, dir string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	files, _ := newestFirst(dir) // none, if it cannot be read
	for _, f := range files {
		if filepath.Ext(f) == checkpointExtension {
			if rival, err := os.Stat(f); err == nil && rival.ModTime().After(info.ModTime()) {
				return os.Chtimes(file, time.Time{}, rival.ModTime().Add(time.Millisecond))
			}
			return nil
		}
	}
	return nil
}

var digits = regexp.MustCompile(`[0-9]+`)

// removeOlder removes checkpoints beside the file path, whose names differ from its name in numbers
// alone, except for the newest.
func removeOlder(path string, most int) error {
	series := func(path string) string { return digits.ReplaceAllString(filepath.Base(path), "#") }
	files, err := newestFirst(filepath.Dir(path))
	kept := 1 // path, whatever clocks say
	for _, f := range files {
		if filepath.Base(f) == filepath.Base(path) || series(f) != series(path) || !isCheckpoint(f) {
			continue
		}
		if kept++; kept <= most {
			continue
		}
		if failed := os.Remove(f); !errors.Is(failed, fs.ErrNotExist) { // another job may have removed it
			err = errors.Join(err, failed)
		}
	}
	return err
}
