package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func examineDirectory(dir string) directory {
	d := directory{path: dir}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		d.err = err
		return d
	}
	if err := unix.Faccessat(unix.AT_FDCWD, dir+"/.", unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		d.err = fmt.Errorf("this user may not write there: %w", err)
	}

	d.tmpfs = fs.Type == unix.TMPFS_MAGIC
	d.size, d.free = int(fs.Blocks)*int(fs.Bsize), int(fs.Bavail)*int(fs.Bsize)
	d.noInode = fs.Files > 0 && fs.Ffree == 0
	return d
}

// probe is a kernel feature that processes need.
type probe struct {
	name    string
	use     string              // its purpose
	needs   func(*scratch) bool // whether an earlier probe has made what this one works on; nil: always
	try     func(*scratch) error
	verdict Verdict // if it fails
	without string  // the consequence, if it fails
	remedy  string
}

const sandbox = "ask who runs this machine: a sandbox or a seccomp filter may forbid it"

// probes are in the order in which they are tried.
var probes = []probe{
	{
		name: "O_TMPFILE, linkat", use: "a job's memory has no name before it is complete",
		try:     (*scratch).makeFile,
		verdict: Problem, without: "jobs cannot make their memory",
		remedy: "mount a tmpfs at /dev/shm, and /proc",
	},
	{
		name: "fallocate", use: "missing memory is an error, not a crash",
		needs: (*scratch).hasFile, try: (*scratch).allocate,
		verdict: Problem, without: "jobs cannot make their memory",
		remedy: "mount a tmpfs at /dev/shm",
	},
	{
		name: "OFD locks", use: "ranks see each other die",
		needs: (*scratch).hasFile, try: (*scratch).lock,
		verdict: Problem, without: "jobs do not start",
		remedy: "mount a tmpfs at /dev/shm; Linux has them since 3.15",
	},
	{
		name: "mmap", use: "ranks share the file's memory",
		needs: (*scratch).hasRoom, try: (*scratch).mapPage,
		verdict: Problem, without: "ranks share no memory",
		remedy: "see ulimit -v, or " + sandbox,
	},
	{
		name: "MADV_POPULATE_WRITE", use: "first calls need not allocate memory",
		needs: (*scratch).hasPage, try: (*scratch).populate,
		verdict: Note, without: "ranks touch each page instead, which takes longer, once",
		remedy: "Linux has it since 5.14",
	},
	{
		name: "futex", use: "ranks sleep in shared memory and wake each other",
		needs: (*scratch).hasPage, try: (*scratch).futex,
		verdict: Problem, without: "ranks cannot wait",
		remedy: sandbox,
	},
	{
		name: "/proc/self/stat", use: "ranks know when their processes started",
		try:     readStat,
		verdict: Problem, without: "jobs do not start",
		remedy: "mount /proc",
	},
	{
		name: "pidfd", use: "launchers identify processes by it, not by ids",
		try:     openPidfd,
		verdict: Note, without: "launchers use process ids; ranks do not need it",
		remedy: "Linux has it since 5.3",
	},
}

// tryProbes tries all probes, on a file without a name in dir.
func tryProbes(dir string) (all []Finding) {
	s := &scratch{dir: dir, fd: -1}
	defer s.close()
	for _, p := range probes {
		err := errUntried
		if p.needs == nil || p.needs(s) {
			err = p.try(s)
		}
		all = append(all, p.finding(err))
	}
	return all
}

// errUntried means that a failed probe before it left nothing to try on.
var errUntried = errors.New("not tried, since a step above failed")

func (p probe) finding(err error) Finding {
	f := ok(PartProcesses, p.name, "%s", p.use)
	switch {
	case err == nil:
		return f
	case errors.Is(err, errUntried):
		f.Says = err.Error()
		return f.with(Note, "")
	}

	f.Says = fmt.Sprintf("%v: %s", err, p.without)
	switch {
	case errors.Is(err, unix.ENOSPC):
		return f.with(p.verdict, enlarge)
	case errors.Is(err, unix.EMFILE):
		return f.with(p.verdict, "raise ulimit -n")
	}
	return f.with(p.verdict, p.remedy)
}

// scratch is the file and memory of the probes.
type scratch struct {
	dir  string
	fd   int    // of the file, -1: none
	full bool   // there is no room for the file: to touch its memory would end the process
	page []byte // of the file, mapped
}

func (s *scratch) close() {
	if s.page != nil {
		_ = unix.Munmap(s.page)
	}
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
	}
}

func (s *scratch) hasFile() bool { return s.fd >= 0 }
func (s *scratch) hasRoom() bool { return s.fd >= 0 && !s.full }
func (s *scratch) hasPage() bool { return s.page != nil }

// procPath returns a path by which the file can be opened although it has no name.
func (s *scratch) procPath() string { return fmt.Sprintf("/proc/self/fd/%d", s.fd) }

// makeFile makes the file, gives it a name, as a job does once its memory is complete, and
// removes the name again.
func (s *scratch) makeFile() (err error) {
	if s.fd, err = unix.Open(s.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600); err != nil {
		s.fd = -1
		return fmt.Errorf("O_TMPFILE: %w", err)
	}
	name := fmt.Sprintf("%s/goccl-doctor-%d-%x", s.dir, os.Getpid(), time.Now().UnixNano())
	if err := unix.Linkat(unix.AT_FDCWD, s.procPath(), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return fmt.Errorf("linkat: %w", err)
	}
	if err := unix.Unlink(name); err != nil {
		return fmt.Errorf("unlink: %w", err)
	}
	return nil
}

func (s *scratch) allocate() error {
	err := untilUninterrupted(func() error { return unix.Fallocate(s.fd, 0, 0, int64(os.Getpagesize())) })
	s.full = errors.Is(err, unix.ENOSPC)
	return err
}

// lock takes a lock through one open file and checks that another open file sees it until
// the first is closed.
func (s *scratch) lock() error {
	holder, err := unix.Open(s.procPath(), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return errUntried // without /proc; makeFile has reported that
	}

	// While the holder is open, the lock must be visible.
	isLocked := false
	if err = unix.FcntlFlock(uintptr(holder), unix.F_OFD_SETLK, firstByte()); err == nil {
		isLocked, err = s.isLocked()
	}
	if err := cmp.Or(err, unix.Close(holder)); err != nil {
		return err
	}
	if !isLocked {
		return errors.New("a held lock is not visible")
	}

	// Afterwards it must be gone.
	if isLocked, err = s.isLocked(); err == nil && isLocked {
		err = errors.New("a lock outlives its holder")
	}
	return err
}

// isLocked reports whether the lock is held through another open file.
func (s *scratch) isLocked() (bool, error) {
	l := firstByte()
	err := unix.FcntlFlock(uintptr(s.fd), unix.F_OFD_GETLK, l)
	return l.Type != unix.F_UNLCK, err
}

func firstByte() *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET, Len: 1}
}

func (s *scratch) mapPage() error {
	size := os.Getpagesize()
	if err := unix.Ftruncate(s.fd, int64(size)); err != nil { // otherwise touching the page ends the process
		return err
	}
	page, err := unix.Mmap(s.fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	s.page = page
	return err
}

func (s *scratch) populate() error {
	return untilUninterrupted(func() error { return unix.Madvise(s.page, unix.MADV_POPULATE_WRITE) })
}

// errNotRefused means that a system call succeeded that had to fail.
var errNotRefused = errors.New("it was not refused")

// futex checks a wait for a changed word, a wait without a wake-up, and a wake-up without
// a sleeper.
func (s *scratch) futex() error {
	const wait, wake = 0, 1
	millisecond := unix.NsecToTimespec(1e6)

	if err := futex(s.page, wait, 1, nil); !errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("wait for a word that has changed: %w", cmp.Or(err, errNotRefused))
	}
	err := untilUninterrupted(func() error { return futex(s.page, wait, 0, &millisecond) })
	if !errors.Is(err, unix.ETIMEDOUT) {
		return fmt.Errorf("wait for a millisecond: %w", cmp.Or(err, errNotRefused))
	}

	if err := futex(s.page, wake, 1, nil); err != nil {
		return fmt.Errorf("wake: %w", err)
	}
	return nil
}

// untilUninterrupted repeats a system call that a signal interrupts.
func untilUninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func readStat(*scratch) error {
	_, err := os.ReadFile("/proc/self/stat")
	return err
}

func openPidfd(*scratch) error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
