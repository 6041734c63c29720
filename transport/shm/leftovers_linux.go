package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Leftovers returns the files that dead jobs of this user have left behind. A segment is a
// leftover if its name and header are valid, no rank holds its lock, and the process that made
// it has ended. A notice, the symbolic link of a rank that could not join, is a leftover if its
// process has ended or it has expired. Leftovers skips files that it cannot judge.
func Leftovers() ([]Leftover, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}

	var all []Leftover
	for _, e := range entries {
		if !isFileName(e.Name()) {
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
			continue // it is gone, or not a segment of this user
		}
		if f.checkDead() == nil {
			all = append(all, Leftover{
				Path: f.path, Job: f.header.name, Ranks: f.header.ranks, Bytes: f.header.total(),
				PID: f.creator.pid, Made: f.made,
			})
		}
		_ = unix.Close(f.fd)
	}
	return all, nil
}

// RemoveLeftovers removes the leftovers of this user's jobs whose names start with prefix. It
// returns an error for each file of such a name that is not a leftover, and still removes the rest.
func RemoveLeftovers(prefix string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("shared memory: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filePrefix()+prefix) && isFileName(e.Name()) {
			errs = append(errs, Leftover{Path: filepath.Join(directory, e.Name())}.Remove())
		}
	}
	return errors.Join(errs...)
}

// Remove removes the file. It succeeds if the file no longer exists, and fails if a segment of a
// living job now has its name.
//
// Remove never removes a segment that it has not judged:
//   - A segment's creator locks it before it names it. A free lock means that the job is dead.
//   - A new segment can get the name only after the old one was removed. Remove holds a lock on
//     the old one, which only one process can hold.
func (l Leftover) Remove() error {
	if n, ok := readNotice(l.Path); ok {
		if n.state() != gone {
			return fmt.Errorf("shared memory %s is in use: rank %d (pid %d) is telling the other ranks that it cannot join: %w", l.Path, n.rank, n.pid, errLeaving)
		}
		return removeName(l.Path)
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
	switch ok, err := tryLock(f.fd, removalLock); {
	case err != nil:
		return fmt.Errorf("shared memory %s cannot be locked: %w", l.Path, err)
	case !ok:
		return fmt.Errorf("shared memory %s is being removed by another process: %w", l.Path, errLeaving)
	}
	if err := f.checkDead(); err != nil {
		return err
	}
	return unlinkFile(f.fd, l.Path)
}

// removeOrphan removes the segment of a group or region that could not be made, if its creator is
// dead: dead is true if the caller knows that; otherwise the creator's lock on the file decides.
// The other ranks do not need the file to learn of the death, because they share the job's segment.
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
	if f.isHeld && !dead {
		return // its creator removes it
	}
	if ok, err := tryLock(f.fd, removalLock); ok && err == nil { // otherwise another process removes it
		_ = unlinkFile(f.fd, f.path) // if that fails it is a leftover
	}
}

// checkDead returns nil if all processes that ever used a segment are dead, and otherwise an error.
func (f *found) checkDead() error {
	if name, _, _ := strings.Cut(filepath.Base(f.path), "~"); name != filePrefix()+f.header.name {
		return fmt.Errorf("shared memory %s belongs to job %q by its header", f.path, f.header.name)
	}
	if isLocked(f.fd, 0, maxRanks) {
		return fmt.Errorf("shared memory %s is in use (%s): %w", f.path, f.describe(), errLeaving)
	}
	if start, ok := startOf(f.creator.pid); ok && start == f.creator.start {
		// The kernel releases a process's locks before the process is gone.
		return fmt.Errorf("shared memory %s: pid %d, which made it, %s: %w", f.path, f.creator.pid, f.creator.doing(), errLeaving)
	}
	return nil
}
