package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Leftovers returns the segments that dead jobs of this user have left behind. It
// knows them by their names and headers; by the locks of their ranks, none of
// which is held; and by the process that made them, which does not run any more.
// Files that it does not understand are not among them.
func Leftovers() ([]Leftover, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	var all []Leftover
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filePrefix()) {
			continue
		}
		path := filepath.Join(directory, e.Name())
		if n, ok := readNotice(path); ok && n.state() == gone {
			job, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), filePrefix()), "~")
			all = append(all, Leftover{Path: path, Job: job, Ranks: n.ranks, PID: n.pid, Made: n.when()})
			continue
		}
		f, err := findFile(path)
		if err != nil {
			continue // gone, or not ours to judge
		}
		if f.dead() == nil {
			all = append(all, Leftover{
				Path: f.path, Job: f.header.name, Ranks: f.header.ranks, Bytes: f.header.total(),
				PID: f.creator.pid, Made: f.made,
			})
		}
		_ = unix.Close(f.fd)
	}
	return all, nil
}

// RemoveLeftovers removes what dead jobs of this user have left behind whose names begin
// with prefix. It fails if there are files of such names that are no leftovers.
func RemoveLeftovers(prefix string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("shared memory: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filePrefix()+prefix) {
			errs = append(errs, Leftover{Path: filepath.Join(directory, e.Name())}.Remove())
		}
	}
	return errors.Join(errs...)
}

// Remove removes the segment; that it is gone already is no error. It fails if
// there is a segment of a living job by now, however young.
//
// It cannot hit another file than the one it has judged: a segment has its
// creator's lock before it has a name, so that a free lock says that its job is dead
// for good; and a name passes to a new segment only after somebody has removed the
// old one, for which Remove holds a lock on the old one that only one process can
// hold.
func (l Leftover) Remove() error {
	if n, ok := readNotice(l.Path); ok {
		if n.state() != gone {
			return fmt.Errorf("shared memory %s is in use: rank %d (pid %d) tells others that it cannot join: %w", l.Path, n.rank, n.pid, errLeaving)
		}
		return removeNotice(l.Path)
	}
	f, err := findFile(l.Path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(f.fd) //nolint:errcheck // nothing was written
	atPoint("judged")
	switch ok, err := tryLock(f.fd, reaping); {
	case err != nil:
		return fmt.Errorf("shared memory %s cannot be locked: %w", l.Path, err)
	case !ok:
		return fmt.Errorf("shared memory %s is being removed by another process: %w", l.Path, errLeaving)
	}
	if err := f.dead(); err != nil {
		return err
	}
	return unlinkFile(f.fd, l.Path)
}

// removeOrphan removes the segment of a group, or of a region, that could not be made,
// if its creator is dead, which the caller knows or the file's lock says. Its ranks know
// each other by the segment of the job, and need not find the file to learn that: some never
// look for it.
func removeOrphan(j Job, dead bool) {
	h, err := newHeader(j, 1)
	if err != nil {
		return
	}
	f, _, err := findJob(filePath(h.name), h)
	if f == nil || err != nil {
		return
	}
	defer unix.Close(f.fd) //nolint:errcheck // nothing was written
	if f.held && !dead {
		return // its creator removes it
	}
	if ok, err := tryLock(f.fd, reaping); ok && err == nil { // or somebody else does
		_ = unlinkFile(f.fd, f.path) // else it is a leftover
	}
}

// dead is nil if all who ever had to do with a segment are dead, and says who is not.
func (f *found) dead() error {
	if name, _, _ := strings.Cut(filepath.Base(f.path), "~"); name != filePrefix()+f.header.name {
		return fmt.Errorf("shared memory %s belongs to job %q by its header", f.path, f.header.name)
	}
	if locked(f.fd, 0, maxRanks) {
		return fmt.Errorf("shared memory %s is in use (%s): %w", f.path, f.describe(), errLeaving)
	}
	if start, ok := startOf(f.creator.pid); ok && start == f.creator.start {
		// The kernel takes a process's locks from it before it is gone.
		return fmt.Errorf("shared memory %s: pid %d, which made it, is running: %w", f.path, f.creator.pid, errLeaving)
	}
	return nil
}
