//go:build unix

package launcher

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

var streamNames = [2]string{"standard output", "standard error"}

// openOutputs prepares where the ranks' output goes: to files, to Stdout and Stderr, or to both.
func (l *launcher) openOutputs() error {
	if dir := cmp.Or(l.Directory, l.Tee); dir != "" {
		if l.restart > 0 {
			dir = filepath.Join(dir, fmt.Sprintf("restart-%d", l.restart))
		}
		if err := l.makeFiles(dir); err != nil {
			return err
		}
	}

	at := new(cursor)
	l.outputs = [2]*output{newOutput(at, l.Stdout), newOutput(at, l.Stderr)}

	for i := range l.ranks {
		for k, o := range l.outputs {
			s := &l.ranks[i].streams[k]
			s.tee, s.stamped, s.pause = l.ranks[i].files[k], l.Timestamps, unfinishedPause
			if l.Directory == "" && (i == 0 || !l.Quiet) {
				s.out = o
			}
			if !l.NoPrefix {
				s.prefix = o.prefix(i, l.world())
			}
		}
	}

	return nil
}

// makeFiles creates the ranks' files in a directory, all or none.
func (l *launcher) makeFiles(dir string) error {
	err := os.MkdirAll(dir, 0o777)
	for i := l.firstHere(); i < l.firstHere()+l.Ranks; i++ {
		for k, ending := range []string{"out", "err"} {
			if err == nil {
				name := filepath.Join(dir, fmt.Sprintf("rank-%d.%s", i, ending))
				l.ranks[i].files[k], err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o666)
			}
		}
	}
	if err == nil {
		return nil
	}

	for i := range l.ranks {
		for _, f := range l.ranks[i].files {
			if f != nil {
				err = errors.Join(err, os.Remove(f.Name()))
			}
		}
	}
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: the output of another run is kept; name another directory, or remove it", err)
	}
	return err
}

// outputError returns why output of the ranks was lost, or nil.
func (l *launcher) outputError() error {
	flag := "--tee"
	if l.Directory != "" {
		flag = "--output"
	}

	for k, o := range l.outputs {
		if o.err != nil {
			return fmt.Errorf("%s: %w", streamNames[k], o.err)
		}
		for i := range l.ranks {
			if err := l.ranks[i].streams[k].teeErr; err != nil {
				return fmt.Errorf("%s: %w", flag, err)
			}
		}
	}
	return nil
}

func (l *launcher) closeFiles() {
	files := []*os.File{l.null, l.keeper.pipe, l.lock}
	for i := range l.ranks {
		files = append(files, l.ranks[i].files[:]...)
	}
	for _, f := range files {
		_ = f.Close() // of nothing, or of what others write
	}
}
