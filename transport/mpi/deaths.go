//go:build linux && (amd64 || arm64)

package mpi

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// MPI tells no rank that another one has died. Each process watches those of its own host through file descriptors of
// processes (pidfd_open), and tells the others.

// deaths is what a process knows of dead ones.
type deaths struct {
	dead []atomic.Bool // by rank

	mu     sync.Mutex
	pids   []int // 0: not known
	fds    []unix.PollFd
	ranks  []int // by place in fds
	looked time.Time
}

func newDeaths(size int) deaths {
	return deaths{dead: make([]atomic.Bool, size), pids: make([]int, size)}
}

// sayHost returns what a process says of itself: its host, as far as process ids count there, and its id.
func sayHost() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return fmt.Sprintf("%s %s %d", strings.TrimSpace(string(boot)), namespace, os.Getpid())
}

// watch watches a rank that has said that, if it is of this host, and reports whether it is.
func (d *deaths) watch(rank int, says string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	var boot, namespace string
	var pid int
	if n, err := fmt.Sscan(says, &boot, &namespace, &pid); n != 3 || err != nil {
		return false
	}
	known := d.pids[rank] != 0
	d.pids[rank] = pid
	if here := strings.HasPrefix(sayHost(), boot+" "+namespace+" "); !here || known || pid == os.Getpid() {
		return here
	}
	fd, err := unix.PidfdOpen(pid, 0)
	switch err {
	case unix.ESRCH:
		d.dead[rank].Store(true)
	case nil:
		d.fds, d.ranks = append(d.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}), append(d.ranks, rank)
	}
	return true
}

// lookTime is the least time between two looks for dead processes.
const lookTime = 20 * time.Millisecond

// look returns the processes of this host that have died since the last look.
func (d *deaths) look() (died []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.fds) == 0 || time.Since(d.looked) < lookTime {
		return nil
	}
	d.looked = time.Now()
	if n, err := unix.Poll(d.fds, 0); n <= 0 || err != nil {
		return nil
	}
	for i, fd := range d.fds {
		if rank := d.ranks[i]; fd.Revents != 0 && !d.dead[rank].Swap(true) {
			died = append(died, rank)
			_ = unix.Close(int(fd.Fd))
			d.fds[i].Fd = -1 // poll ignores it
		}
	}
	return died
}

// mark marks a rank as dead, and reports whether that is new.
func (d *deaths) mark(rank int) bool { return !d.dead[rank].Swap(true) }

// pid returns the process id of a rank, 0 if it is not known.
func (d *deaths) pid(rank int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pids[rank]
}
