//go:build linux && (amd64 || arm64)

package mpi

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"golang.org/x/sys/unix"
)

// MPI reports no dead rank. Each process watches those of its own host through file descriptors of
// processes (pidfd_open), and reports deaths to the others.

// deaths is what a process knows of dead ones.
type deaths struct {
	isDead []interleave.Bool // by rank

	mu       sync.Mutex
	pids     []int // by rank; 0: not known
	fds      []unix.PollFd
	ranks    []int // by index in fds
	lastLook time.Time
}

func newDeaths(size int) deaths {
	return deaths{isDead: make([]interleave.Bool, size), pids: make([]int, size)}
}

// host is where a process is.
type host struct {
	boot, pids string // process ids count in one boot of one machine, in one namespace
	memory     string // the directory of shared memory
	pid        int
	token      string // random; that of a node's first process names the node's memory
}

// sharesMemory reports whether processes on h and o can share memory.
func (h host) sharesMemory(o host) bool { return h.sharesPIDs(o) && h.memory == o.memory }

// sharesPIDs reports whether processes on h and o see each other's process ids.
func (h host) sharesPIDs(o host) bool { return h.boot == o.boot && h.pids == o.pids }

// describeHost returns the description of this process, for the others.
func describeHost() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	var dir unix.Stat_t
	_ = unix.Stat("/dev/shm", &dir) // without it, connecting the node returns the error
	return fmt.Sprintf("%s %s %d:%d %d %s", cmp.Or(strings.TrimSpace(string(boot)), "-"), cmp.Or(namespace, "-"), dir.Dev, dir.Ino, os.Getpid(), rand.Text())
}

// parseHost parses a description that describeHost has made.
func parseHost(description string) (h host, err error) {
	if _, err := fmt.Sscan(description, &h.boot, &h.pids, &h.memory, &h.pid, &h.token); err != nil {
		return host{}, fmt.Errorf("%.200q: %w", description, err)
	}
	return h, nil
}

// watchRank watches a rank if it is of this process's host.
func (d *deaths) watchRank(rank int, h, here host) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.pids[rank] != 0
	d.pids[rank] = h.pid
	if known || h.pid == os.Getpid() || !h.sharesPIDs(here) {
		return
	}

	fd, err := unix.PidfdOpen(h.pid, 0)
	switch err {
	case unix.ESRCH:
		d.isDead[rank].Store(true)
	case nil:
		d.fds, d.ranks = append(d.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}), append(d.ranks, rank)
	}
}

// lookInterval is the least time between two looks for dead processes.
const lookInterval = 20 * time.Millisecond

// findDead returns the processes of this host that have died since the last look.
func (d *deaths) findDead() (died []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.fds) == 0 || time.Since(d.lastLook) < lookInterval {
		return nil
	}
	d.lastLook = time.Now()
	if n, err := unix.Poll(d.fds, 0); n <= 0 || err != nil {
		return nil
	}

	for i, fd := range d.fds {
		if rank := d.ranks[i]; fd.Revents != 0 && !d.isDead[rank].Swap(true) {
			died = append(died, rank)
			_ = unix.Close(int(fd.Fd))
			d.fds[i].Fd = -1 // poll ignores it
		}
	}
	return died
}

// markDead marks a rank as dead, and reports whether that is new.
func (d *deaths) markDead(rank int) bool { return !d.isDead[rank].Swap(true) }

// pidOf returns the process id of a rank, 0 if it is not known.
func (d *deaths) pidOf(rank int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pids[rank]
}
