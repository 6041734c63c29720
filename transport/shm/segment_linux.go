package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
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
	arena            // zero at first, aligned to a page
	file     mapping // of the whole file
	header   header  // as in the file
	first    string  // the first of the names that the file may have
	path     string  // the name that it has or will have
	rank     int
	fd       int
	named    bool // rank 0 only: the file has its name
	attached bool // this rank's place is attached
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
		err = s.safely(func() error { return s.gather(w) })
	} else {
		s.reportCannotAttach(err)
	}
	if err != nil {
		return nil, errors.Join(err, s.giveUp(err))
	}
	return s, nil
}

// fill writes the header of a new file without a name, and takes rank 0's place in it.
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

// create makes the segment. Only rank 0 calls it.
func (s *segment) create(w *waiting) (err error) {
	if s.fd, err = makeFile(s.header.total()); err != nil {
		return err
	}
	if err := s.fill(); err != nil {
		return err
	}
	atPoint("made")
	var leaving error // why a name will soon be free
	busy := false     // a name that was skipped will be free
	for k := 0; w.ctx.Err() == nil; {
		s.path = numbered(s.first, k)
		err := nameFile(s.fd, s.path)
		if err == nil {
			s.named = true
			atPoint("named")
			return nil
		}
		if !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("shared memory %s cannot be given its name: %w", s.path, err)
		}
		err = s.occupied()
		if errors.Is(err, errAnotherJob) {
			leaving, busy = err, true
		}
		switch {
		case errors.Is(err, errOthers) && k < maxNames-1:
			k++
		case errors.Is(err, errLeaving) || err == nil:
			k, busy, leaving = 0, false, err
			w.pause()
		case errors.Is(err, errOthers) && busy:
			k, busy = 0, false
			atPoint("all names taken")
			w.pause()
		default:
			return err
		}
	}
	err = w.ended(s, nil)
	if leaving != nil {
		err = fmt.Errorf("%w; %w", err, leaving)
	}
	return err
}

// errLeaving reports that the file with the segment's name will soon lose it.
var errLeaving = errors.New("its ranks are about to leave it")

// occupied returns an error that describes the file with the segment's name, or nil if the name
// is free by now. It removes a leftover.
func (s *segment) occupied() error {
	f, err := findFile(s.path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(f.fd) //nolint:errcheck // nothing was written
	switch {
	case !f.held:
		return Leftover{Path: f.path}.Remove()
	case f.header.secret != s.header.secret:
		return f.others()
	case f.verdict != gathering:
		return fmt.Errorf("shared memory %s (%s): %w", s.path, f.describe(), errLeaving)
	default:
		return s.refuse(f, fmt.Errorf("shared memory %s: another job of this name is gathering its ranks (%s): give each job and each attempt another name", s.path, f.describe()))
	}
}

func (f *found) stale() error {
	return fmt.Errorf("shared memory %s was left behind by a job of this name (%s): start all ranks again, and rank 0 removes it", f.path, f.describe())
}

// left reports whether a segment whose creator is dead may be a leftover of an earlier job. Rank
// 0 of this job then replaces it, and the other ranks wait for that. The segment belongs to this
// job if it has the job's secret, or if it was made after this process started.
func (s *segment) left(f *found) (over bool) {
	if s.header.secret != [32]byte{} {
		return false
	}
	start, err := ownStart()
	return err != nil || f.header.made < (start+1)*uint64(tick)
}

// attach waits until the segment appears, and takes this rank's place in it.
func (s *segment) attach(w *waiting) error {
	for {
		w.stale = nil
		f, passed, err := findJob(s.first, s.header)
		if err != nil {
			return err
		}
		if f != nil {
			s.fd, s.path = f.fd, f.path
			if again, err := s.take(f, w); !again {
				return err
			}
			_ = unix.Close(s.fd) // the file was removed meanwhile
			s.fd, s.path = -1, s.first
		}
		if !w.pause() {
			err := w.ended(s, []int{0})
			for _, why := range []error{passed, w.stale, checkFree(s.header.total())} { // rank 0 will have noticed a full directory
				if why != nil {
					err = fmt.Errorf("%w; %w", err, why)
				}
			}
			return err
		}
	}
}

// take locks and takes this rank's place in the file f. It returns again if the file turns out
// not to belong to this job.
func (s *segment) take(f *found, w *waiting) (again bool, err error) {
	s.header.id = f.header.id
	st := new(unix.Stat_t)
	removed := unix.Fstat(f.fd, st) == nil && st.Nlink == 0
	switch {
	case f.verdict == ready:
		return true, nil
	case f.verdict == over && (f.held || removed):
		return false, f.why()
	case !f.held:
		if removed {
			return true, nil
		}
		if f.header.name == s.header.name && s.left(f) {
			w.stale = f.stale()
			atPoint("waiting")
			return true, nil
		}
		if err := f.header.differs(s.header); err != nil {
			return false, fmt.Errorf("shared memory %s (%s): %w", s.path, f.describe(), err)
		}
		if f.creator.state == attached { // segments are named only after that
			s.attachToDead(f)
		}
		return false, fmt.Errorf("%w; %w", &transport.PeerLostError{Rank: 0, PID: f.creator.pid}, f.stale())
	}
	if err := f.header.differs(s.header); err != nil {
		err = s.refuse(f, fmt.Errorf("shared memory %s (%s): %w", s.path, f.describe(), err))
		return err == nil, err
	}
	atPoint("found")
	for {
		ok, err := tryLock(s.fd, s.rank)
		if err != nil {
			return false, fmt.Errorf("shared memory %s: %s cannot lock files: %w", s.path, directory, err)
		}
		other, err := f.place(s.rank)
		if err != nil {
			return false, err
		}
		switch {
		case other.state == absent && ok:
			atPoint("locked")
			return false, s.enter()
		case other.state != absent && ok:
			err = s.refuse(f, fmt.Errorf("%w: it had joined the job of shared memory %s already: start all ranks again, under another name",
				&transport.PeerLostError{Rank: s.rank, PID: other.pid}, s.path))
			return err == nil, err
		case other.state != absent:
			err = s.refuse(f, fmt.Errorf("shared memory %s: pid %d has joined as rank %d already and is running: two processes were started as this rank, or two jobs have one name", s.path, other.pid, s.rank))
			return err == nil, err
		}
		// The other process holds the lock and will soon write its process id.
		if !w.pause() {
			return false, w.ended(s, nil)
		}
	}
}

// refuse returns err, because of which this process cannot be a rank of segment f. It ends the
// segment's gathering, so that ranks that wait for this rank or have taken its place learn of the
// error. It returns nil if all ranks of that segment have joined, since it is then another job's.
func (s *segment) refuse(f *found, err error) error {
	if f.end(groupsync.JoinFailure(s.rank, err)) == ready {
		return nil
	}
	return err
}

// reportCannotAttach tells the ranks that wait for this rank in the segment's file why it cannot
// attach.
func (s *segment) reportCannotAttach(err error) {
	if s.fd < 0 || s.rank == 0 || s.attached || !locked(s.fd, 0, 1) {
		return // no file was found, or its creator is dead
	}
	(&found{path: s.path, fd: s.fd}).end(groupsync.JoinFailure(s.rank, err))
}

// end ends the gathering of segment f for the reason why, unless it has ended already. It returns
// the segment's verdict.
func (f *found) end(why *transport.Failure) (verdict uint32) {
	verdict = over // if the head cannot be mapped, the other ranks learn nothing
	_ = f.withHead(func(head arena) { verdict = endGathering(f.fd, head, why) })
	return verdict
}

// withHead calls use with the mapped part of the file before the places.
func (f *found) withHead(use func(head arena)) error {
	head, err := mapFile(f.fd, placesOffset)
	if err != nil {
		return err
	}
	err = head.guarded(func() { use(head) })
	return errors.Join(err, head.unmap())
}

// endGathering is end for a mapped file.
func endGathering(fd int, file arena, why *transport.Failure) (verdict uint32) {
	word, failed := at[atomic.Uint32](file, verdictOffset), at[atomic.Uint32](file, failedOffset)
	if ok, err := tryLock(fd, failureLock); ok && err == nil && word.Load() == gathering && failed.Load() == 0 {
		encodeFailure(file.bytes(failureOffset, recordBytes), why)
		failed.Store(1)
	}
	word.CompareAndSwap(gathering, over)
	return word.Load()
}

// why returns the reason why the gathering has ended.
func (f *found) why() (reason error) {
	if err := f.withHead(func(head arena) { reason = whyOver(head, f.path) }); err != nil {
		return fmt.Errorf("shared memory %s: the ranks have given up, and the reason cannot be read: %w", f.path, err)
	}
	return reason
}

// whyOver is why for a mapped file.
func whyOver(file arena, path string) error {
	failed := at[atomic.Uint32](file, failedOffset)
	for range 100 { // another rank may be about to write it
		if failed.Load() != 0 {
			break
		}
		time.Sleep(firstPause)
	}
	if failed.Load() == 0 {
		return fmt.Errorf("shared memory %s: a rank gave up before all had joined, and was killed before it could write the reason", path)
	}
	return fmt.Errorf("shared memory %s: %w", path, groupsync.JoinError(decodeFailure(file.bytes(failureOffset, recordBytes))))
}

// attachToDead takes this rank's place in a file whose creator is dead, if the place is free. The
// last rank to do so can thereby tell that it is the last, and removes the file.
func (s *segment) attachToDead(f *found) {
	if ok, err := tryLock(s.fd, s.rank); !ok || err != nil {
		return
	}
	if own, err := f.place(s.rank); err == nil && own.state == absent {
		_ = s.enter() // if that fails the file is a leftover
	}
}

// enter maps the file and writes this rank's place. The rank must hold its lock.
func (s *segment) enter() error {
	start, err := ownStart()
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("shared memory: this process cannot see when it started: %w: mount /proc", err)
	case err != nil:
		return fmt.Errorf("shared memory: this process cannot see when it started: %w", err)
	}
	file, err := mapFile(s.fd, s.header.total())
	if err != nil {
		return refused(s.header.total(), fmt.Errorf("map: %w", err))
	}
	s.file.arena, s.arena = file, file.from(s.header.offset())
	return s.safely(func() error {
		p := s.place(s.rank)
		p.start, p.pid = start, int32(os.Getpid())
		p.state.Store(attached)
		s.attached = true
		atPoint("attached")
		return nil
	})
}

// gather waits until all ranks have attached, or the gathering is over.
func (s *segment) gather(w *waiting) error {
	for {
		missing, err := s.survey()
		switch s.verdict().Load() {
		case ready:
			return nil
		case over:
			return whyOver(s.file.arena, s.path)
		}
		if err == nil && s.rank == 0 && len(missing) == 0 {
			atPoint("gathered")
			if err = unlinkFile(s.fd, s.path); err == nil {
				s.named = false
				atPoint("unnamed")
				s.verdict().CompareAndSwap(gathering, ready)
				continue
			}
		}
		if err == nil && !w.pause() {
			err = w.ended(s, missing)
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

// survey returns the ranks that have not attached, and an error if one that has is dead.
func (s *segment) survey() (missing []int, err error) {
	for rank := range s.header.ranks {
		if s.place(rank).state.Load() == absent {
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
		if s.place(rank).state.Load() == attached && !s.alive(rank) {
			return missing, fmt.Errorf("shared memory %s: %w", s.path, &transport.PeerLostError{Rank: rank, PID: s.pid(rank)})
		}
	}
	return missing, nil
}

// verdict returns the word that tells whether all ranks have joined.
func (s *segment) verdict() *atomic.Uint32 { return at[atomic.Uint32](s.file.arena, verdictOffset) }

func (s *segment) place(rank int) *place {
	return at[place](s.file.arena, placesOffset+rank*placeBytes)
}

// alive reports whether the process of a rank that has attached lives. It takes one system call.
// Any goroutine may call it.
func (s *segment) alive(rank int) bool {
	return rank == s.rank || locked(s.fd, rank, 1)
}

// pid returns a rank's process id in the rank's own pid namespace. If that is another one, the id
// is useful only in messages.
func (s *segment) pid(rank int) int { return int(s.place(rank).pid) }

// safely is guarded for functions that return errors. Its own errors name the segment.
func (s *segment) safely(f func() error) error {
	var err error
	if gone := s.file.guarded(func() { err = f() }); gone != nil {
		return fmt.Errorf("shared memory %s: %w", s.path, gone)
	}
	return err
}

// giveUp leaves a segment whose gathering is over, because of err.
func (s *segment) giveUp(err error) error {
	lost := (*transport.PeerLostError)(nil)
	var left error
	if s.named || errors.As(err, &lost) && lost.Rank == 0 && s.complete() {
		left = unlinkFile(s.fd, s.path)
	}
	return errors.Join(left, s.close())
}

// complete reports whether this rank must remove the segment, whose creator is dead: all ranks
// have attached, so that no rank will look for the file, and this rank has locked byte removalLock.
func (s *segment) complete() bool {
	if !s.attached {
		return false
	}
	err := s.safely(func() error {
		for rank := range s.header.ranks {
			if s.place(rank).state.Load() == absent {
				return errors.New("a rank has not come yet, and must learn from the file that its creator is dead")
			}
		}
		return nil
	})
	if err != nil {
		return false
	}
	ok, err := tryLock(s.fd, removalLock)
	return ok && err == nil
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

// waiting is the wait of one openSegment.
type waiting struct {
	ctx   context.Context
	start time.Time
	last  time.Duration // the last pause
	stale error         // describes a leftover with the segment's name
}

// pause sleeps for a while, and reports whether ctx has not ended.
func (w *waiting) pause() bool {
	w.last = min(max(2*w.last, firstPause), longestPause)
	t := time.NewTimer(w.last)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.ctx.Done():
	}
	return w.ctx.Err() == nil
}

// ended returns the error of a wait that ctx has ended.
func (w *waiting) ended(s *segment, missing []int) error {
	cause := context.Cause(w.ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		late := &transport.TimeoutError{Missing: missing, By: s.rank, After: time.Since(w.start).Round(time.Millisecond)}
		if s.attached && len(missing) == 0 {
			late.Behind = []int{0} // it has not yet stored the verdict ready
		}
		cause = late
	}
	return fmt.Errorf("shared memory %s, rank %d of %d: %w", s.path, s.rank, s.header.ranks, cause)
}
