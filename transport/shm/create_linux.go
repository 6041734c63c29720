package shm

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// create makes the segment. Only rank 0 calls it.
func (s *segment) create(w *waiting) (err error) {
	if s.fd, err = makeFile(s.header.total()); err != nil {
		return err
	}
	if err := s.fill(); err != nil {
		return err
	}
	atPoint("made")
	return s.takeName(w)
}

// takeName gives the segment's file the first of its names that is not taken. It waits for a name
// that will soon be free.
func (s *segment) takeName(w *waiting) error {
	var leaving error // why a name will soon be free
	busy := false     // a name that was skipped will be free
	for k := 0; w.ctx.Err() == nil; {
		if err := s.tryName(k); err != nil {
			return err
		}
		if s.isNamed {
			atPoint("named")
			return nil
		}

		err := s.checkOccupied()
		if errors.Is(err, errAnotherJob) {
			leaving, busy = err, true
		}
		switch {
		case errors.Is(err, errForeign) && k < maxNames-1:
			k++
		case errors.Is(err, errLeaving) || err == nil:
			k, busy, leaving = 0, false, err
			w.pause()

		case errors.Is(err, errForeign) && busy:
			k, busy = 0, false
			atPoint("all names taken")
			w.pause()
		default:
			return err
		}
	}

	err := w.endedError(s, nil)
	if leaving != nil {
		err = fmt.Errorf("%w; %w", err, leaving)
	}
	return err
}

// tryName gives the segment's file the k-th of its names, unless that is taken.
func (s *segment) tryName(k int) error {
	s.path = numbered(s.first, k)
	err := nameFile(s.fd, s.path)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("shared memory %s cannot be given its name: %w", s.path, err)
	}
	s.isNamed = err == nil
	return nil
}

// errLeaving reports that the file with the segment's name will soon lose it.
var errLeaving = errors.New("its ranks are about to leave it")

// checkOccupied returns an error that describes the file with the segment's name, or nil if the
// name is free by now. It removes a leftover.
func (s *segment) checkOccupied() error {
	f, err := findFile(s.path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(f.fd) //nolint:errcheck // nothing was written

	switch {
	case !f.isHeld:
		return Leftover{Path: f.path}.Remove()
	case f.header.secret != s.header.secret:
		return f.foreignError()
	case f.verdict != gathering:
		return fmt.Errorf("shared memory %s (%s): %w", s.path, f.describe(), errLeaving)
	}
	_, err = s.abandon(f, fmt.Errorf("shared memory %s: two processes say they are rank 0, this one and another (%s): "+
		"give each process a rank of its own, or, if they are of two jobs or attempts, each of these another name", s.path, f.describe()))
	return err
}

// leftoverError returns the error for a segment whose creator is dead.
func (f *found) leftoverError() error {
	return fmt.Errorf("shared memory %s was left behind by a job of this name (%s): start all ranks again, "+
		"and rank 0 removes it", f.path, f.describe())
}
