package shm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// flightMemory implements transport.Records. It is a mapping of its own, since groups that were
// made of the job's group record there after the job's endpoint was freed.
type flightMemory struct {
	header header
	file   mapping // to the end of the flight recorders
	gone   interleave.Once
}

// flightBytes returns the length of the file up to the end of the flight recorders.
func (h header) flightBytes() int { return h.offset() + h.ranks*flight.PartBytes(h.ranks) }

// part returns a rank's part of the flight recorder in a file that is mapped from its start.
func (h header) part(file arena, rank int) []byte {
	n := flight.PartBytes(h.ranks)
	return file.bytes(h.offset()+rank*n, n)
}

// Records implements transport.Recorder. It fails for a group, which has no such memory.
func (m *mapped) Records() (transport.Records, error) {
	if m.geometry.Flight == 0 {
		return nil, errors.New("shm: the ranks of this group have no memory for records")
	}
	s := m.segment
	s.file.mu.RLock() // close does not close the file meanwhile
	defer s.file.mu.RUnlock()
	if s.file.isFreed {
		return nil, transport.ErrClosed
	}

	file, err := mapFile(s.fd, s.header.flightBytes())
	if err != nil {
		return nil, fmt.Errorf("shared memory %s: its flight recorder cannot be mapped: %w", s.path, err)
	}
	n := flight.PartBytes(m.Size())
	if err := file.populate(s.header.offset()+m.Rank()*n, n); err != nil {
		return nil, errors.Join(fmt.Errorf("shared memory %s: %w", s.path, err), file.unmap())
	}
	return &flightMemory{header: s.header, file: mapping{arena: file}}, nil
}

func (f *flightMemory) Job() string          { return f.header.jobID() }
func (f *flightMemory) Part(rank int) []byte { return f.header.part(f.file.arena, rank) }

// Free implements transport.Records. Freeing twice is a no-op.
func (f *flightMemory) Free() error {
	_, err := f.file.unmap()
	return err
}

// Vanished implements transport.Records.
func (f *flightMemory) Vanished(v any) error {
	err := f.file.vanished(v)
	if err != nil {
		f.gone.Do(func() { _ = f.file.blank() }) // if that fails the next access faults again
		err = fmt.Errorf("shared memory of the flight recorder: %w", err)
	}
	return err
}

// jobID returns a text that tells this job from others of its name.
func (h header) jobID() string { return fmt.Sprintf("%s-%x", h.name, h.id[:4]) }

// Flight is the flight recorders of a job's ranks as a process sees them that is not a rank. It
// keeps the memory after all ranks have died.
type Flight struct {
	fd     int
	header header
	file   mapping
}

// OpenFlight opens the flight recorders of a job of this user, of which a rank is running or
// joining, by the job's name. The name may lack its end, a "." and the number of a restart, and a
// "-" and the number by which package dist counts the groups that were initialized: then OpenFlight
// takes the last. It reads the memory only.
func OpenFlight(job string) (*Flight, error) {
	found, err := findFlight(func(f, found *Flight) bool {
		return f.header.isOf(job) && (found == nil || found.header.made <= f.header.made)
	})
	if found == nil && err == nil {
		err = fmt.Errorf("no job %q of this user is running", job)
	}
	return found, err
}

// OpenNodeFlight opens the flight recorders of the ranks that a job of several nodes has on this
// one. isRank reports whether a process is one of them. They have the ranks of the whole job.
func OpenNodeFlight(isRank func(pid int) bool) (*Flight, error) {
	found, err := findFlight(func(f, found *Flight) bool {
		isFirst := found == nil || f.header.made < found.header.made // before those of groups
		return isFirst && slices.ContainsFunc(f.Running().PIDs, isRank)
	})
	if found == nil {
		return nil, cmp.Or(err, errors.New("no rank of the job has joined the others of its node"))
	}
	return found, err
}

// findFlight opens the segments of this user, and returns the last one that isBetter than the one
// before it; nil: none is.
func findFlight(isBetter func(f, found *Flight) bool) (found *Flight, err error) {
	err = eachSegment(func(fd int, h header) (taken bool) {
		f, err := openFlight(fd, h)
		if err != nil {
			return false // it has ended
		}
		if !isBetter(f, found) {
			_, _ = f.file.unmap() // eachSegment closes the file
			return false
		}
		if found != nil {
			_ = found.Close()
		}
		found = f
		return true
	})
	return found, err
}

// isOf reports whether the header is that of a job's segment, by the name that a user has of the
// job.
func (h header) isOf(job string) bool {
	end, isBegin := strings.CutPrefix(h.name, job)
	isBegin = isBegin && (end == "" || end[0] == '.' || end[0] == '-')
	restart, counted, _ := strings.Cut(strings.TrimPrefix(end, "."), "-")
	return h.jobID() == job || isBegin && strings.Trim(restart+counted, "0123456789") == ""
}

func openFlight(fd int, h header) (*Flight, error) {
	file, err := mapForReading(fd, h.flightBytes())
	if err != nil {
		return nil, err
	}
	return &Flight{fd: fd, header: h, file: mapping{arena: file}}, nil
}

// part returns a part of the flight recorders.
func (f *Flight) part(i int) []byte { return f.header.part(f.file.arena, i) }

// Job returns a name for the job that no other job has.
func (f *Flight) Job() string { return f.header.jobID() }

// Size returns the number of ranks of the job, or of those on this node if there are several.
func (f *Flight) Size() int { return f.header.ranks }

// Ranks returns what the ranks have recorded up to now. Ranks that have not started to record are
// left out.
func (f *Flight) Ranks() (ranks []flight.Rank, err error) {
	gone := f.file.guarded(func() { ranks, _ = flight.ReadAll(f.header.ranks, f.part) })
	if gone != nil {
		return nil, fmt.Errorf("the memory of job %s: %w", f.header.name, gone)
	}
	return ranks, nil
}

// Close releases the memory. Closing twice is a no-op.
func (f *Flight) Close() error {
	first, err := f.file.unmap()
	if first {
		err = errors.Join(err, unix.Close(f.fd))
	}
	return err
}
