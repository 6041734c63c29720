package shm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// awaitAll waits until all ranks have attached, or the gathering is over.
func (s *segment) awaitAll(w *waiting) error {
	for {
		missing, err := s.findMissing()
		switch s.verdict().Load() {
		case ready:
			return nil
		case abandoned:
			return s.readReason(s.file.arena, w)
		}

		if err == nil && s.rank == 0 && len(missing) == 0 {
			atPoint("gathered")
			if err = unlinkFile(s.fd, s.path); err == nil {
				s.isNamed = false
				atPoint("unnamed")
				s.verdict().CompareAndSwap(gathering, ready)
				continue
			}
		}

		if err == nil && !w.pause() {
			err = w.endedError(s, missing)
		}
		if err != nil {
			atPoint("giving up")
			if endGathering(s.fd, s.file.arena, groupsync.JoinFailure(s.rank, err)) == ready {
				return nil
			}
			return err
		}
	}
}

// findMissing returns the ranks that have not attached, and an error if one that has is dead.
func (s *segment) findMissing() (missing []int, err error) {
	for rank := range s.header.ranks {
		if s.seat(rank).state.Load() == absent {
			missing = append(missing, rank)
		}
	}

	// Each test takes the kernel a pass over all locks. Rank 0 therefore tests the other
	// ranks and ends the gathering if one is dead; the others test only rank 0.
	tested := s.header.ranks
	if s.rank != 0 {
		tested = 1
	}
	for rank := range tested {
		if s.seat(rank).state.Load() == attached && !s.isAlive(rank) {
			return missing, fmt.Errorf("shared memory %s: %w", s.path, &transport.PeerLostError{Rank: rank, PID: s.pid(rank)})
		}
	}
	return missing, nil
}

// abandon returns err, because of which this process cannot be a rank of segment f. It ends the
// segment's gathering, so that ranks that wait for this rank or have taken its seat learn of the
// error. It returns again, and no error, if all ranks of that segment have joined, since it is then
// another job's.
func (s *segment) abandon(f *found, err error) (again bool, _ error) {
	if f.abandon(groupsync.JoinFailure(s.rank, err)) == ready {
		return true, nil
	}
	return false, misfitError{err}
}

// misfitError is why this process cannot be a rank of a segment. The segment loses its name then,
// so that ranks which come later do not find the reason in it.
type misfitError struct{ error }

func (e misfitError) Unwrap() error { return e.error }

// abandon ends the gathering of segment f for the reason why, unless it has ended already. It
// returns the segment's verdict.
func (f *found) abandon(why *transport.Failure) (verdict uint32) {
	verdict = abandoned // if the head cannot be mapped, the other ranks learn nothing
	_ = f.withHead(func(head arena) { verdict = endGathering(f.fd, head, why) })
	return verdict
}

// withHead calls use with the mapped part of the file before the seats.
func (f *found) withHead(use func(head arena)) error {
	head, err := mapBriefly(f.fd, seatsOffset)
	if err != nil {
		return err
	}
	err = head.guarded(func() { use(head) })
	return errors.Join(err, head.unmap())
}

// endGathering is found.abandon for a mapped file.
func endGathering(fd int, file arena, why *transport.Failure) (verdict uint32) {
	word, failed := at[interleave.Uint32](file, verdictOffset), at[interleave.Uint32](file, failedOffset)
	if ok, err := tryLock(fd, failureLock); ok && err == nil && word.Load() != ready && failed.Load() == 0 {
		encodeFailure(file.bytes(failureOffset, recordBytes), why)
		failed.Store(1)
	}
	word.CompareAndSwap(gathering, abandoned)
	return word.Load()
}

// whyAbandoned returns the reason why the gathering of f has ended.
func (s *segment) whyAbandoned(f *found, w *waiting) (reason error) {
	if err := f.withHead(func(head arena) { reason = s.readReason(head, w) }); err != nil {
		return fmt.Errorf("shared memory %s: the ranks have given up, and the reason cannot be read: %w", f.path, err)
	}
	return reason
}

// readReason is whyAbandoned for a mapped file. Who is about to write the reason holds a lock.
func (s *segment) readReason(file arena, w *waiting) error {
	failed := at[interleave.Uint32](file, failedOffset)
	for isFree := false; failed.Load() == 0; isFree = !isLocked(s.fd, failureLock, 1) {
		if isFree {
			return fmt.Errorf("shared memory %s: %w", s.path, s.whoGaveUp())
		}
		if !w.pause() {
			return fmt.Errorf("shared memory %s: the ranks have given up, and the reason is not there yet: %w", s.path, context.Cause(w.ctx))
		}
	}
	return fmt.Errorf("shared memory %s: %w", s.path, groupsync.JoinError(decodeFailure(file.bytes(failureOffset, recordBytes))))
}

// whoGaveUp returns why ranks have given up of which none has left the reason.
func (s *segment) whoGaveUp() error {
	for rank := range s.header.ranks {
		seat, err := (&found{path: s.path, fd: s.fd}).readSeat(rank)
		if err == nil && seat.state == attached && !s.isAlive(rank) {
			return &transport.PeerLostError{Rank: rank, PID: seat.pid}
		}
	}
	return errors.New("a process gave up before all ranks had joined, and left no reason")
}

// giveUp leaves a segment whose gathering is over, because of err.
func (s *segment) giveUp(err error) error {
	var removeErr error
	lost, _ := errors.AsType[*transport.PeerLostError](err)
	isOrphan := lost != nil && lost.Rank == 0 && s.hasAttached
	if s.isNamed || isOrphan && s.mustRemove() {
		removeErr = unlinkFile(s.fd, s.path)
	} else if isOrphan { // a rank that is still to come needs the header alone
		segmentMemory{s}.discard()
	}
	return errors.Join(removeErr, s.close())
}

// mustRemove reports whether this rank must remove the segment, whose creator is dead: all ranks
// have attached, so that no rank will look for the file, and this rank has locked byte removalLock.
func (s *segment) mustRemove() bool {
	mustLearn := false // a rank has not come yet, and must learn from the file that its creator is dead
	gone := s.file.guarded(func() {
		for rank := range s.header.ranks {
			mustLearn = mustLearn || s.seat(rank).state.Load() == absent
		}
	})
	if gone != nil || mustLearn {
		return false
	}
	ok, err := tryLock(s.fd, removalLock)
	return ok && err == nil
}

// waiting is the wait of one openSegment.
type waiting struct {
	ctx      context.Context
	start    time.Time
	last     time.Duration // the last pause
	leftover error         // describes a leftover with the segment's name
}

// pause sleeps for a while, and reports whether ctx has not ended.
func (w *waiting) pause() bool {
	w.last = min(max(2*w.last, firstPause), longestPause)
	t := interleave.NewTimer(w.last)
	defer t.Stop()
	interleave.First(t.C, w.ctx.Done())
	return w.ctx.Err() == nil
}

// endedError returns the error of a wait that ctx has ended.
func (w *waiting) endedError(s *segment, missing []int) error {
	cause := context.Cause(w.ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		late := &transport.TimeoutError{Missing: missing, By: s.rank, After: time.Since(w.start).Round(time.Millisecond)}
		if s.hasAttached && len(missing) == 0 {
			late.Behind = []int{0} // it has not yet stored the verdict ready
		}
		cause = late
		if len(missing) > 0 {
			cause = fmt.Errorf("%w; ranks in several containers need one %s that they share", late, directory)
		}
	}
	return fmt.Errorf("shared memory %s, rank %d of %d: %w", s.path, s.rank, s.header.ranks, cause)
}
