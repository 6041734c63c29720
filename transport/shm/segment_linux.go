package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"golang.org/x/sys/unix"
)

// A segment is a job's shared memory as one of its ranks sees it: the arena and the ranks'
// processes.
//
//   - Rank 0 makes the file without a name. It allocates the memory, writes the header, takes
//     its lock, and then names the file, which fails if the name is taken. No rank therefore
//     sees an incomplete file, and a file whose creator's lock is free belongs to a dead job.
//   - The other ranks open the file, check it, take their locks, map it and attach. They skip
//     files of other users and of jobs with another secret (see findJob).
//   - When all ranks have attached, rank 0 removes the name and stores the verdict ready. From
//     then on the file lives exactly as long as the ranks, however they end.
//   - If rank 0 is killed before, the other ranks still attach, learn of the death, and the last
//     of them removes the name. If one of them never comes, Leftovers finds the file.
type segment struct {
	arena               // zero at first, aligned to a page
	file        mapping // of the whole file
	header      header  // as in the file
	first       string  // the first of the names that the file may have
	path        string  // the name that it has or will have
	rank        int
	fd          int
	isNamed     bool // rank 0 only: the file has its name
	hasAttached bool // this rank's seat is attached
}

// atPoint is called when this process reaches a point of openSegment or makeRegion. Tests stop
// there.
var atPoint = func(string) {}

// Pauses between two looks at the files or memory that a wait is for. They may be long because
// the job does not run yet.
const (
	firstPause   = time.Millisecond
	longestPause = 10 * time.Millisecond
)

// openSegment makes or finds the segment of a job, with an arena of size zero bytes.
//
// It is collective. It returns on all ranks when all have attached, and succeeds on all or on
// none. If a rank dies or gives up before, or a process comes that cannot be a rank of this job,
// it fails at once on all ranks that have attached, with the reason. If it fails, no file
// remains, unless rank 0 is killed and another rank comes only after that, or never. The next job
// of that name removes such a file, as do goccl run and RemoveLeftovers.
//
// errors.As finds:
//   - *transport.AllocationFailedError if the memory cannot be allocated;
//   - *transport.PeerLostError if a rank died;
//   - *transport.AbortedError if another rank gave up;
//   - *transport.TimeoutError if the deadline of ctx passed; it names the ranks that did not
//     come.
//
// errors.Is finds any other cause that ended ctx. Other errors describe what is wrong with the
// job or with a file that has the segment's name.
func openSegment(ctx context.Context, j Job, size int) (*segment, error) {
	h, err := newHeader(j, size)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	if err := checkDirectory(h.total()); err != nil {
		return nil, err
	}
	s := &segment{header: h, first: filePath(h.name), path: filePath(h.name), rank: j.Rank, fd: -1}
	w := &waiting{ctx: ctx, start: time.Now()}

	if j.Rank == 0 {
		err = s.create(w)
	} else {
		err = s.attach(w)
	}

	if err == nil {
		err = s.safely(func() error { return s.awaitAll(w) })
	} else {
		s.reportCannotAttach(err)
	}
	if err != nil {
		return nil, errors.Join(err, s.giveUp(err))
	}

	return s, nil
}

// fill writes the header of a new file without a name, and takes rank 0's seat in it.
func (s *segment) fill() error {
	s.header.sign()
	if _, err := unix.Pwrite(s.fd, s.header.encode(), 0); err != nil {
		return fmt.Errorf("shared memory %s cannot be written: %w", s.path, err)
	}
	if _, err := tryLock(s.fd, 0); err != nil { // no other process has the file
		return fmt.Errorf("shared memory %s: %s cannot lock files: %w", s.path, directory, err)
	}
	return s.enter()
}

// enter maps the file and writes this rank's seat. The rank must hold its lock.
func (s *segment) enter() error {
	start, err := ownStart()
	switch {
	case isOutOfDescriptors(err):
		return descriptorError(err)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("shared memory: this process cannot see when it started: %w: mount /proc", err)
	case err != nil:
		return fmt.Errorf("shared memory: this process cannot see when it started: %w", err)
	}

	file, err := mapFile(s.fd, s.header.total())
	if isOutOfDescriptors(err) {
		return descriptorError(err)
	}
	if err != nil {
		return allocationError(s.header.total(), fmt.Errorf("map: %w", err))
	}

	s.file.arena, s.arena = file, file.from(s.header.offset())
	noteProcess(s)
	return s.safely(func() error {
		p := s.seat(s.rank)
		p.start, p.pid = start, int32(os.Getpid())
		p.state.Store(attached)
		s.hasAttached = true
		atPoint("attached")
		return nil
	})
}

// verdict returns the word that tells whether all ranks have joined.
func (s *segment) verdict() *interleave.Uint32 {
	return at[interleave.Uint32](s.file.arena, verdictOffset)
}

func (s *segment) seat(rank int) *seat {
	return at[seat](s.file.arena, seatsOffset+rank*seatBytes)
}

// isAlive reports whether the process of a rank that has attached lives. It takes one system call.
// Any goroutine may call it.
func (s *segment) isAlive(rank int) bool {
	return rank == s.rank || isLocked(s.fd, rank, 1)
}

// pid returns a rank's process id in the rank's own pid namespace. If that is another one, the id
// is useful only in messages.
func (s *segment) pid(rank int) int { return int(s.seat(rank).pid) }

// safely is guarded for functions that return errors. Its own errors name the segment.
func (s *segment) safely(f func() error) error {
	var err error
	if gone := s.file.guarded(func() { err = f() }); gone != nil {
		return fmt.Errorf("shared memory %s: %w", s.path, gone)
	}
	return err
}

// close unmaps the segment and then releases this rank's lock, so that this rank counts as dead
// only when it can no longer touch the memory. After close, only close may be called.
func (s *segment) close() error {
	first, err := s.file.unmap()
	if first && s.fd >= 0 {
		err = errors.Join(err, unix.Close(s.fd))
	}
	return err
}
