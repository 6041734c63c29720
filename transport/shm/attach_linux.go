package shm

import (
	"fmt"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
	"golang.org/x/sys/unix"
)

// attach waits until the segment appears, and takes this rank's seat in it.
func (s *segment) attach(w *waiting) error {
	for looks := 1; ; looks++ {
		w.leftover = nil
		f, passed, err := findJob(s.first, s.header)
		if err != nil {
			return err
		}
		if f != nil {
			s.fd, s.path = f.fd, f.path
			if again, err := s.join(f, w); !again {
				return err
			}
			_ = unix.Close(s.fd) // the file was removed meanwhile
			s.fd, s.path = -1, s.first
		}
		hasTime, isCertain := w.pause(), false
		var other error
		if !hasTime || looks%looksBetweenUsers == 0 {
			if isCertain, other = s.checkUsers(); isCertain {
				return other
			}
		}
		if hasTime {
			continue
		}

		// Rank 0 will have noticed a full directory.
		err = w.endedError(s, []int{0})
		for _, why := range []error{passed, w.leftover, other, checkFree(s.header.total())} {
			if why != nil {
				err = fmt.Errorf("%w; %w", err, why)
			}
		}
		return err
	}
}

// join takes this rank's seat in the file f. It returns again if the file turns out not to belong
// to this job.
func (s *segment) join(f *found, w *waiting) (again bool, err error) {
	s.header.id = f.header.id
	isRemoved := f.isRemoved() // asked once, since it may become so between two cases
	switch {
	case f.verdict == ready:
		return true, nil
	case f.verdict == abandoned && (f.isHeld || isRemoved):
		return false, s.whyAbandoned(f, w)
	case !f.isHeld && isRemoved:
		return true, nil
	case !f.isHeld:
		return s.joinDead(f, w)
	}

	if err := f.header.differs(s.header); err != nil {
		return s.abandon(f, fmt.Errorf("shared memory %s (%s): %w", s.path, f.describe(), err))
	}
	atPoint("found")
	return s.takeSeat(f, w)
}

// isRemoved reports whether the file has no name any more.
func (f *found) isRemoved() bool {
	st := new(unix.Stat_t)
	return unix.Fstat(f.fd, st) == nil && st.Nlink == 0
}

// joinDead is join for a file whose creator is dead and has not removed it. It returns an error,
// unless the file may be a leftover, which rank 0 of this job replaces.
func (s *segment) joinDead(f *found, w *waiting) (again bool, err error) {
	if f.header.name == s.header.name && s.mayBeLeftover(f) {
		w.leftover = f.leftoverError()
		atPoint("waiting")
		return true, nil
	}

	if err := f.header.differs(s.header); err != nil {
		return false, fmt.Errorf("shared memory %s (%s): %w", s.path, f.describe(), err)
	}
	if f.creator.state == attached { // segments are named only after that
		s.attachToDead(f)
	}
	return false, fmt.Errorf("%w; %w", &transport.PeerLostError{Rank: 0, PID: f.creator.pid}, f.leftoverError())
}

// takeSeat locks and takes this rank's seat, unless another process has it.
func (s *segment) takeSeat(f *found, w *waiting) (again bool, err error) {
	for {
		isFree, err := tryLock(s.fd, s.rank)
		if err != nil {
			return false, fmt.Errorf("shared memory %s: %s cannot lock files: %w", s.path, directory, err)
		}
		other, err := f.readSeat(s.rank)
		if err != nil {
			return false, err
		}

		switch {
		case other.state == absent && isFree:
			atPoint("locked")
			return false, s.enter()
		case other.state != absent && isFree:
			return s.abandon(f, fmt.Errorf("%w: it had joined the job of shared memory %s already: start all ranks again, under another name",
				&transport.PeerLostError{Rank: s.rank, PID: other.pid}, s.path))
		case other.state != absent:
			return s.abandon(f, fmt.Errorf("shared memory %s: two processes say they are rank %d, this one and pid %d, which %s: "+
				"give each process a rank of its own, or, if they are of two jobs, each of these another name", s.path, s.rank, other.pid, other.doing()))
		}

		// The other process holds the lock and will soon write its process id.
		if !w.pause() {
			return false, w.endedError(s, nil)
		}
	}
}

// mayBeLeftover reports whether a segment whose creator is dead may be a leftover of an earlier
// job. Rank 0 of this job then replaces it, and the other ranks wait for that. The segment belongs
// to this job if it has the job's secret, or if it was made after this process started.
func (s *segment) mayBeLeftover(f *found) bool {
	if s.header.secret != [32]byte{} {
		return false
	}
	start, err := ownStart()
	return err != nil || f.header.made < (start+1)*uint64(tick)
}

// attachToDead takes this rank's seat in a file whose creator is dead, if the seat is free. The
// last rank to do so can thereby tell that it is the last, and removes the file.
func (s *segment) attachToDead(f *found) {
	if ok, err := tryLock(s.fd, s.rank); !ok || err != nil {
		return
	}
	if seat, err := f.readSeat(s.rank); err == nil && seat.state == absent {
		_ = s.enter() // if that fails the file is a leftover
	}
}

// reportCannotAttach tells the ranks that wait for this rank in the segment's file why it cannot
// attach.
func (s *segment) reportCannotAttach(err error) {
	if s.fd < 0 || s.rank == 0 || s.hasAttached || !isLocked(s.fd, 0, 1) {
		return // no file was found, or its creator is dead
	}
	(&found{path: s.path, fd: s.fd}).abandon(groupsync.JoinFailure(s.rank, err))
}
