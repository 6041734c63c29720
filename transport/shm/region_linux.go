package shm

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// segmentMemory is the memory of a region. Each region is a separate segment.
type segmentMemory struct{ *segment }

// makeRegion makes a region's segment. It is part of a call, in which the ranks exchange errors
// three times: after rank 0 has made the file, after each rank has allocated its own part, and
// after rank 0 has removed the file's name. All ranks therefore get the region, or all get the
// same *transport.AllocationFailedError. If rank 0 dies before it removes the name, the other
// ranks notice and remove it.
func (m *mapped) makeRegion(number uint64, size int) (regionMemory, error) {
	j := m.segment.header.subJob(m.Rank(), m.Size(), "-region-%d", number)
	h, err := newHeader(j, size)
	s := &segment{header: h, first: filePath(h.name), path: filePath(h.name), rank: j.Rank, fd: -1}
	if err == nil && s.rank == 0 {
		err = s.createNamed()
	}
	if err = m.exchangeErrors(size, err); err == nil {
		atPoint("region offered")
		err = m.exchangeErrors(size, s.allocatePart())
	}
	if s.isNamed {
		atPoint("region to be unnamed")
		_ = unlinkFile(s.fd, s.path) // if that fails it is a leftover
	}
	if _, none := errors.AsType[*transport.AllocationFailedError](err); err == nil || none {
		if lost := m.exchangeErrors(size, nil); lost != nil {
			err = lost
		}
	}
	if err == nil {
		return segmentMemory{s}, nil
	}

	_ = s.close()
	if lost, dead := errors.AsType[*transport.PeerLostError](err); dead && lost.Rank == 0 {
		removeOrphan(j, true)
	}
	return nil, err
}

// exchangeErrors tells all ranks this rank's error, which may be nil. It returns the error of the
// first rank that has one, the same on all ranks, or the error of the wait for them.
func (ep *endpoint) exchangeErrors(size int, rankErr error) error {
	note := make([]byte, min(ep.PieceBytes(), 512))
	if rankErr != nil {
		if none, ok := errors.AsType[*transport.AllocationFailedError](rankErr); ok {
			copyText(note, none.Message)
		} else {
			copyText(note, rankErr.Error())
		}
	}
	ep.PutInput(note, len(note), len(note))

	if err := ep.Flip(); err != nil {
		return err
	}
	for rank := range ep.Size() {
		if text, _, _ := strings.Cut(string(ep.Input(rank, len(note))), "\x00"); text != "" {
			return &transport.AllocationFailedError{RequestedBytes: size, Message: fmt.Sprintf("rank %d: %s", rank, text)}
		}
	}
	return nil
}

// createNamed makes the file of a region, without its memory, and names it.
func (s *segment) createNamed() (err error) {
	if err := errors.Join(checkDirectory(s.header.total()), checkFree(s.header.total())); err != nil {
		return err
	}
	if s.fd, err = newFile(s.header.total()); err != nil {
		return err
	}

	if err := allocate(s.fd, 0, s.header.offset()); err != nil {
		return allocationError(s.header.total(), err)
	}
	if err := unix.Ftruncate(s.fd, int64(s.header.total())); err != nil {
		return allocationError(s.header.total(), err)
	}
	if err := s.fill(); err != nil {
		return err
	}

	for k := range maxNames {
		if err := s.tryName(k); err != nil {
			return err
		}
		if s.isNamed {
			atPoint("region named")
			return nil
		}
	}

	return fmt.Errorf("shared memory %s: all of its %d names are taken", s.first, maxNames)
}

// allocatePart allocates this rank's part of a region's memory. The system places the pages near
// the rank that allocates them.
func (s *segment) allocatePart() error {
	if s.rank != 0 {
		f, passed, err := findJob(s.first, s.header)
		switch {
		case err != nil:
			return err
		case f == nil:
			return errors.Join(fmt.Errorf("shared memory %s is gone", s.first), passed)
		}
		s.fd, s.path = f.fd, f.path
		if err := f.header.differs(s.header); err != nil {
			return fmt.Errorf("shared memory %s (%s): %w", s.path, f.describe(), err)
		}

		s.header.id = f.header.id
		if err := s.enter(); err != nil {
			return err
		}
	}
	lo, hi := s.part(s.rank), s.part(s.rank+1)
	atPoint("region shared")
	if err := allocate(s.fd, lo, hi-lo); err != nil {
		return allocationError(s.header.total(), err)
	}
	atPoint("region allocated")
	return nil
}

// part returns the file offset of the first page of a rank's part. A page that two ranks' blocks
// share belongs to the lower rank.
func (s *segment) part(rank int) int {
	n, r := s.header.arena, s.header.ranks
	page := os.Getpagesize()
	at := n/r*rank + min(rank, n%r)
	return min(s.header.offset()+(at+page-1)&^(page-1), s.header.total())
}

func (m segmentMemory) bytes() []byte { return m.arena.bytes(0, m.header.arena) }

// leave marks the rank's seat as done.
func (m segmentMemory) leave() {
	_ = m.safely(func() error { m.seat(m.rank).state.Store(done); return nil }) // memory that is gone needs no mark
}

func (m segmentMemory) isUnused() (yes bool) {
	err := m.safely(func() error {
		for rank := range m.header.ranks {
			if m.seat(rank).state.Load() != done {
				return nil
			}
		}
		yes = true
		return nil
	})
	return yes || err != nil
}

func (m segmentMemory) discard() {
	const how = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	_ = unix.Fallocate(m.fd, how, int64(m.header.offset()), int64(m.header.arena)) // if that fails the memory stays until all ranks have unmapped it
}
