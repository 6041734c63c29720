package packet

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine returns what tells this process's machine apart from others: its boot, the namespace of
// process ids, and the directory of shared memory.
func machine() (boot, pids, memory string) {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	var dir unix.Stat_t
	_ = unix.Stat("/dev/shm", &dir) // without it, connecting the node returns the error
	return cmp.Or(strings.TrimSpace(string(id)), "-"), cmp.Or(namespace, "-"), fmt.Sprintf("%d:%d", dir.Dev, dir.Ino)
}

// watched is processes of this host, through file descriptors (pidfd_open).
type watched struct {
	fds      []unix.PollFd
	ranks    []int // by index in fds
	lastLook time.Time
}

// add watches the process of a rank. It returns false if that does not exist.
func (w *watched) add(rank, pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		w.fds, w.ranks = append(w.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}), append(w.ranks, rank)
	}
	return err != unix.ESRCH
}

// lookInterval is the least time between two looks for dead processes.
const lookInterval = 20 * time.Millisecond

// find returns the ranks whose processes have died since the last look.
func (w *watched) find() (died []int) {
	if len(w.fds) == 0 || time.Since(w.lastLook) < lookInterval {
		return nil
	}
	w.lastLook = time.Now()
	if n, err := unix.Poll(w.fds, 0); n <= 0 || err != nil {
		return nil
	}

	for i, fd := range w.fds {
		if fd.Revents != 0 {
			died = append(died, w.ranks[i])
			_ = unix.Close(int(fd.Fd))
			w.fds[i].Fd = -1 // poll ignores it
		}
	}
	return died
}
