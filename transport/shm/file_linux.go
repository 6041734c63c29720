package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// directory is where segments lie. Tests replace it.
var directory = "/dev/shm"

// filePrefix is the prefix of the names of all segments of this user.
func filePrefix() string { return fmt.Sprintf("goccl-%d-", os.Geteuid()) }

func filePath(job string) string { return filepath.Join(directory, filePrefix()+job) }

// maxNames is the number of file names that a job may use. Other users may make files in the
// directory, and two jobs may have the same name. A job's segment therefore gets the first of
// these names that is not taken: the job's own, or that name with ~ and a number. No job's name
// contains a ~.
const maxNames = 16

// numbered returns the k-th name of a segment whose first name is path.
func numbered(path string, k int) string {
	if k == 0 {
		return path
	}
	return fmt.Sprintf("%s~%d", path, k)
}

// isFileName reports whether a segment or a notice of this user may have the name: that of a job,
// or one with ~ and a number. Anybody can make files of any other name, which no message shows.
func isFileName(name string) bool {
	job, isOurs := strings.CutPrefix(name, filePrefix())
	job, number, isNumbered := strings.Cut(job, "~")
	isOther := func(c rune) bool { return c >= utf8.RuneSelf || !isNameByte(byte(c)) }
	return isOurs && job != "" && (number != "") == isNumbered && strings.IndexFunc(job+number, isOther) < 0
}

// errForeign reports that a file belongs to another user, or to another job of this name. The
// segment then uses the next name.
var errForeign = errors.New("it is not this job's")

// errAnotherJob reports that a file belongs to another job, which releases the name when all of
// its ranks have joined.
var errAnotherJob = fmt.Errorf("it has the name until all of its ranks have joined: %w", errForeign)

// findJob returns the segment of the job that h describes, or nil if no file is that segment.
// It skips files of other users and jobs; passed is the error for one of them. err is set if
// the segment can never appear: all names are taken for good, or a file cannot be judged.
func findJob(path string, h header) (f *found, passed, err error) {
	free, busy := false, false
	for k := range maxNames {
		f, err := findFile(numbered(path, k))
		if err == nil {
			if f.header.secret == h.secret {
				return f, passed, nil
			}

			err = f.foreignError()
			_ = unix.Close(f.fd)
		}
		switch {
		case errors.Is(err, unix.ENOENT):
			free = true
		case errors.Is(err, errForeign):
			passed, busy = err, busy || errors.Is(err, errAnotherJob)
		case !free: // rank 0 would fail here as well
			return nil, passed, err
		}
	}
	if !free && !busy {
		return nil, passed, passed
	}
	return nil, passed, nil
}

// foreignError returns the error for a segment that belongs to another job.
func (f *found) foreignError() error {
	return fmt.Errorf("shared memory %s belongs to another job of this name (%s): %w", f.path, f.describe(), errAnotherJob)
}

// allocationError returns the error for a directory that does not provide the bytes that a segment
// needs. All reasons share one text, because the remedy is the same.
func allocationError(need int, reason error) error {
	have := "nothing"
	var fs unix.Statfs_t
	if err := unix.Statfs(directory, &fs); err == nil {
		have = fmt.Sprintf("%d of %d bytes", fs.Bavail*uint64(fs.Bsize), fs.Blocks*uint64(fs.Bsize))
		if fs.Files > 0 && fs.Ffree == 0 {
			have += ", but no inode,"
		}
	}
	text := fmt.Sprintf("%s: %v: %d bytes are needed", directory, reason, need)
	if !errors.Is(reason, unix.EFBIG) { // a limit of this process, and not of the directory
		text += fmt.Sprintf(", %s free; the directory must be a tmpfs with enough room that this user may write to (in containers: --shm-size, or a memory volume mounted there)", have)
	}
	return &transport.AllocationFailedError{RequestedBytes: need, Message: text}
}

// checkDirectory returns an error if rank 0 cannot make a segment of need bytes. Each rank calls
// it, so that none waits for rank 0 in vain.
func checkDirectory(need int) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(directory, &fs); err != nil {
		return allocationError(need, err)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, directory+"/.", unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return allocationError(need, err)
	}
	if fs.Blocks > 0 && fs.Blocks*uint64(fs.Bsize) < uint64(need) { // a tmpfs without limit reports 0
		return allocationError(need, unix.ENOSPC)
	}
	return nil
}

// checkFree returns an error if the directory has no room for a segment now.
func checkFree(need int) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(directory, &fs); err != nil {
		return allocationError(need, err)
	}
	if fs.Blocks > 0 && fs.Bavail*uint64(fs.Bsize) < uint64(need) || fs.Files > 0 && fs.Ffree == 0 {
		return allocationError(need, unix.ENOSPC)
	}
	return nil
}

// isOutOfDescriptors reports whether err means that the process or the machine can open no more
// files.
func isOutOfDescriptors(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

func descriptorError(err error) error {
	return fmt.Errorf("shared memory: this process can open no file in %s: %w (see ulimit -n)", directory, err)
}

// makeFile makes a file of size bytes without a name. It allocates the memory, so that no store
// to it fails later.
func makeFile(size int) (fd int, err error) {
	fd, err = newFile(size)
	if err != nil {
		return fd, err
	}
	if err := allocate(fd, 0, size); err != nil {
		_ = unix.Ftruncate(fd, 0) // so that the error shows what is free without this file
		return fd, allocationError(size, err)
	}
	return fd, nil
}

// newFile makes an empty file without a name. The caller will extend it to size bytes; errors
// name that size.
func newFile(size int) (fd int, err error) {
	fd, err = openFile(directory, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		err = fmt.Errorf("its file system cannot make files without a name (O_TMPFILE): %w", err)
	}
	if isOutOfDescriptors(err) {
		return -1, descriptorError(err)
	}
	if err != nil {
		return -1, allocationError(size, err)
	}
	if err := unix.Fchmod(fd, 0o600); err != nil { // overrides the umask
		return fd, fmt.Errorf("mode of a file in %s: %w", directory, err)
	}
	return fd, nil
}

// openFile opens a file, or makes one that only this user can open.
func openFile(path string, flags int) (fd int, err error) {
	if err := lacks(unix.EMFILE); err != nil {
		return -1, err
	}
	return unix.Open(path, flags, 0o600)
}

// fallocate is replaced by tests, to make it fail.
var fallocate = unix.Fallocate

// allocate allocates the memory of n bytes of a file from offset off.
func allocate(fd, off, n int) error {
	if err := lacks(unix.ENOSPC); err != nil {
		return err
	}
	// Piece by piece, because a signal makes the kernel undo the current piece.
	const piece = 1 << 20
	for end := off + n; off < end; {
		n := min(piece, end-off)
		switch err := fallocate(fd, 0, int64(off), int64(n)); {
		case err == nil:
			off += n
		case errors.Is(err, unix.EFBIG):
			return fmt.Errorf("%w (see ulimit -f)", err)
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}

	return nil
}

// nameFile names a file that has no name. It fails if the name is taken.
func nameFile(fd int, path string) error {
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	return unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}

// unlinkFile removes the name of an open file, unless it has none.
func unlinkFile(fd int, path string) error {
	if st := new(unix.Stat_t); unix.Fstat(fd, st) == nil && st.Nlink == 0 {
		return nil
	}
	return removeName(path)
}

// removeName removes a file. It succeeds if the file no longer exists.
func removeName(path string) error {
	if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("shared memory %s cannot be removed: %w", path, err)
	}
	return nil
}

// A found is a named segment file that was opened and checked, but not mapped.
type found struct {
	path    string
	fd      int
	header  header
	made    time.Time
	creator occupant // rank 0
	isHeld  bool     // the creator lives
	verdict uint32
}

// findFile opens a file and checks that it is a segment of this user. errors.Is finds
// unix.ENOENT if the file does not exist.
func findFile(path string) (*found, error) {
	// The flags guard against symbolic links, named pipes and terminals.
	fd, err := openFile(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.ENOENT) {
		return nil, err
	}
	if isOutOfDescriptors(err) {
		return nil, descriptorError(err)
	}
	if err != nil {
		var st unix.Stat_t
		if gone := unix.Lstat(path, &st); gone != nil {
			return nil, gone
		}

		if err := checkFile(path, &st); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("shared memory %s cannot be opened: %w", path, err)
	}
	f := &found{path: path, fd: fd}
	if err := f.read(); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return f, nil
}

func (f *found) read() error {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return fmt.Errorf("shared memory %s: %w", f.path, err)
	}
	if err := checkFile(f.path, &st); err != nil {
		return err
	}
	b := make([]byte, headBytes)
	n, err := unix.Pread(f.fd, b, 0)
	if err != nil {
		return fmt.Errorf("shared memory %s cannot be read: %w", f.path, err)
	}

	f.header, err = parseHeader(b[:n])
	if err == nil && st.Size != int64(f.header.total()) {
		err = fmt.Errorf("it has %d bytes, its header says %d", st.Size, f.header.total())
	}
	if err != nil {
		return fmt.Errorf("%s is not a segment of shared memory: %w; remove it, or give the job another name", f.path, err)
	}

	f.made = f.header.madeAt()
	f.isHeld = isLocked(f.fd, 0, 1)
	if f.creator, err = f.readSeat(0); err != nil {
		return err
	}
	word := make([]byte, 4)
	if _, err := unix.Pread(f.fd, word, verdictOffset); err != nil { // after the lock: a rank stores its verdict before it releases its lock
		return fmt.Errorf("shared memory %s cannot be read: %w", f.path, err)
	}
	f.verdict = binary.NativeEndian.Uint32(word)
	return nil
}

// readSeat reads a rank's seat.
func (f *found) readSeat(rank int) (o occupant, err error) {
	b := make([]byte, seatBytes)
	if _, err := unix.Pread(f.fd, b, int64(seatsOffset+rank*seatBytes)); err != nil {
		return o, fmt.Errorf("shared memory %s cannot be read: %w", f.path, err)
	}
	return decodeSeat(b), nil
}

// describe returns a text with the process that made the segment, the time, and whether that
// process lives.
func (f *found) describe() string {
	fate := "is dead"
	if f.isHeld {
		fate = f.creator.doing()
	}
	return fmt.Sprintf("made at %s by pid %d, which %s", f.made.Format(time.DateTime), f.creator.pid, fate)
}

// doing returns whether a process that lives is running or stopped.
func (o occupant) doing() string {
	if state, start, err := readStat(fmt.Sprintf("/proc/%d/stat", o.pid)); err == nil && start == o.start && state == "T" {
		return "is stopped"
	}
	return "is running"
}

// checkFile returns an error if a file cannot be a segment of this user.
func checkFile(path string, st *unix.Stat_t) error {
	const remedy = "remove it, or give the job another name"
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return fmt.Errorf("shared memory %s belongs to user %d, this process to user %d: have it removed, or give the job another name; %w", path, st.Uid, uid, errForeign)
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG {
		return fmt.Errorf("shared memory %s is a %s, not a regular file: %s", path, kindText(kind), remedy)
	}
	if mode := st.Mode &^ unix.S_IFMT; mode != 0o600 {
		return fmt.Errorf("shared memory %s has mode %04o, want 0600: others may have written to it: %s", path, mode, remedy)
	}
	return nil
}

func kindText(kind uint32) string {
	switch kind {
	case unix.S_IFLNK:
		return "symbolic link"
	case unix.S_IFDIR:
		return "directory"
	case unix.S_IFIFO:
		return "named pipe"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}
