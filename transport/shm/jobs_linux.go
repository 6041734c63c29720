package shm

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/flight"
	"golang.org/x/sys/unix"
)

// Jobs returns the jobs of this user whose ranks are running and have started to record what they
// do, by name. It leaves out jobs whose processes it cannot see: those of another pid namespace.
func Jobs() (jobs []RunningJob, err error) {
	err = eachSegment(func(fd int, h header) (taken bool) {
		if f, err := openFlight(fd, h); err == nil { // otherwise it has ended
			if ranks, err := f.Ranks(); err == nil && len(ranks) > 0 {
				jobs = append(jobs, f.Running())
			}
			_, _ = f.file.unmap() // eachSegment closes the file
		}
		return false
	})
	slices.SortFunc(jobs, func(a, b RunningJob) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.Made.Compare(b.Made)) })
	return jobs, err
}

// Running returns the job and the state of its processes.
func (f *Flight) Running() RunningJob {
	h := f.header
	j := RunningJob{Name: h.name, Ranks: h.ranks, PIDs: make([]int, h.ranks), States: make([]string, h.ranks), Made: h.madeAt()}
	numbers, isNode := make([]int, h.ranks), false

	for seat := range j.PIDs {
		var p occupant // none, if the memory has vanished
		numbers[seat] = -1
		_ = f.file.guarded(func() {
			p = decodeSeat(f.file.bytes(seatsOffset+seat*seatBytes, seatBytes))
			if number, ok := flight.Number(f.part(seat)); ok {
				numbers[seat], isNode = number, isNode || number != seat
			}
		})
		j.PIDs[seat], j.States[seat] = f.process(seat, p)
	}

	if isNode {
		j.Numbers = numbers
	}
	return j
}

// process returns the id and the state of the process in a rank's seat. The id may by now be that
// of another process, or be one of another pid namespace; the start of the process tells.
func (f *Flight) process(rank int, p occupant) (pid int, state string) {
	letter, start, err := readStat(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil || start != p.start {
		if isLocked(f.fd, rank, 1) {
			return 0, "elsewhere"
		}
		return 0, "gone"
	}

	return p.pid, cmp.Or(map[string]string{"T": "stopped", "t": "traced", "Z": "zombie", "X": "gone"}[letter], "running")
}

// eachSegment calls use with a descriptor, for reading, and the header of each segment that a
// process of this user has open: of jobs, groups and regions. use reports whether it keeps the
// descriptor. A segment's file has no name once all ranks have joined, so eachSegment looks for it
// in the descriptors of processes. If the only segments are of another version, it returns an
// error.
func eachSegment(use func(fd int, h header) (taken bool)) error {
	processes, err := os.ReadDir("/proc")
	if err == nil && len(processes) == 0 {
		_, err = os.Stat("/proc/self/stat")
	}
	if err != nil {
		return fmt.Errorf("running jobs: %w", err)
	}

	var foreign error
	seen := map[[16]byte]bool{}
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		files := filepath.Join("/proc", p.Name(), "fd")
		descriptors, err := os.ReadDir(files)
		if errors.Is(err, unix.EMFILE) {
			return fmt.Errorf("running jobs: %w", err)
		} else if err != nil {
			continue // another user's, or it has ended
		}
		for _, d := range descriptors {
			path := filepath.Join(files, d.Name())
			if target, err := os.Readlink(path); err != nil || !strings.HasPrefix(target, directory+"/") {
				continue
			}

			fd, h, err := openForReading(path)
			if err != nil {
				if other, ok := errors.AsType[versionError](err); ok {
					foreign = other
				}
				continue
			}

			if seen[h.id] || !use(fd, h) {
				_ = unix.Close(fd)
			}
			seen[h.id] = true
		}
	}
	if len(seen) == 0 && foreign != nil {
		return fmt.Errorf("a job of this user is running, but cannot be read: %w", foreign)
	}
	return nil
}

// openForReading opens a segment of this user.
func openForReading(path string) (fd int, h header, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil { // before it is opened, which a pipe or device would notice
		return -1, h, err
	}
	if err := checkFile(path, &st); err != nil {
		return -1, h, err
	}
	fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, h, err
	}

	b := make([]byte, headBytes)
	n, err := unix.Pread(fd, b, 0)
	if err == nil {
		h, err = parseHeader(b[:max(n, 0)])
	}
	if err == nil {
		err = unix.Fstat(fd, &st)
	}

	if err == nil && (st.Size != int64(h.total()) || h.flightBytes() > h.total()) {
		err = errors.New("its length is not that of a job's memory")
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, h, err
	}
	return fd, h, nil
}
