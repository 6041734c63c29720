//go:build unix

package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

var streamNames = [2]string{"standard output", "standard error"}

// openOutputs prepares where the ranks' output goes: to files, to Stdout and Stderr, or to both.
func (l *launcher) openOutputs() error {
	if err := l.makeFiles(); err != nil && (l.restart == 0 || !l.Files.Beside) {
		return err
	} else if err != nil {
		l.warn(-1, fmt.Sprintf("--tee: %v; this start writes no files", err))
	}

	at := new(cursor)
	l.outputs = [2]*output{newOutput(at, l.Stdout), newOutput(at, l.Stderr)}

	for i := range l.ranks {
		for k, o := range l.outputs {
			s := &l.ranks[i].streams[k]
			s.file, s.stamped, s.pause = l.ranks[i].files[k], l.Timestamps, unfinishedPause
			if (l.Files.Directory == "" || l.Files.Beside) && (i == 0 || !l.Quiet) {
				s.out = o
			}
			if !l.NoPrefix {
				s.prefix = o.prefix(i, l.world())
			}
		}
	}

	return nil
}

// makeFiles creates the ranks' files, all or none.
func (l *launcher) makeFiles() error {
	dir := l.Files.Directory
	if dir == "" {
		return nil
	}
	if l.restart > 0 {
		dir = filepath.Join(dir, fmt.Sprintf("restart-%d", l.restart))
	}

	var once sync.Once
	lose := func(rank int, err error) {
		once.Do(func() {
			l.warn(rank, fmt.Sprintf("--tee: %v; the job goes on, and what cannot be written is not in its files", err))
		})
	}

	err := os.MkdirAll(dir, 0o777)
	for i := l.firstHere(); i < l.firstHere()+l.Ranks; i++ {
		for k, ending := range []string{"out", "err"} {
			if err == nil {
				l.ranks[i].files[k], err = l.makeFile(i, filepath.Join(dir, fmt.Sprintf("rank-%d.%s", i, ending)), lose)
			}
		}
	}
	if err == nil {
		return nil
	}

	for i := range l.ranks {
		for k, f := range l.ranks[i].files {
			if f != nil {
				err = errors.Join(err, f.Close(), os.Remove(f.name))
			}
			l.ranks[i].files[k] = nil
		}
	}
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: the output of another run is kept; name another directory, or remove it", err)
	}
	return err
}

// makeFile creates a file of a rank. If its output is shown as well, lose gets the errors of
// writing.
func (l *launcher) makeFile(rank int, name string, lose func(rank int, err error)) (*rankFile, error) {
	file, err := newFile(name)
	if err != nil {
		return nil, err
	}
	f := &rankFile{File: file, name: name, most: l.Files.Bytes}
	if l.Files.Beside {
		f.lose = func(err error) { lose(rank, err) }
	}
	return f, nil
}

// outputError returns why output of the ranks was lost, or nil.
func (l *launcher) outputError() error {
	for k, o := range l.outputs {
		if o.err != nil {
			return fmt.Errorf("%s: %w", streamNames[k], o.err)
		}
		for i := range l.ranks {
			if err := l.ranks[i].streams[k].fileErr; err != nil {
				return fmt.Errorf("--output: %w", err)
			}
		}
	}
	return nil
}

func (l *launcher) closeFiles() {
	files := []*os.File{l.null, l.keeper.pipe, l.lock}
	for i := range l.ranks {
		for _, f := range l.ranks[i].files {
			if f != nil {
				files = append(files, f.File)
			}
		}
	}
	for _, f := range files {
		_ = f.Close() // of nothing, or of what others write
	}
}
