package cores

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// claims is how many names the lock of a core has. Somebody's claim that does not count has its
// name until the socket is closed; a job then takes another name.
const claims = 4

// lockName returns the k-th name of the core's lock.
func (c Core) lockName(k int) string { return fmt.Sprintf("%s-core-%d~%d", LockPrefix, c.ID, k) }

// take takes the lock of the core, or reports that another job holds it. It looks at the other
// names only when it has its own: of two jobs at the same moment, the later one sees the other.
func (c Core) take() (l lock, held bool) {
	taken := -1
	for k := 0; k < claims && taken < 0; k++ {
		if l, held = take(c.lockName(k)); !held {
			taken = k
		}
	}
	for k := range claims {
		if k == taken {
			continue
		}

		conn, counts := c.holder(k)
		if conn != nil {
			_ = conn.Close()
		}
		if counts {
			release(l)
			return nil, true
		}
	}
	return l, taken < 0
}

// holder connects to the process that has the k-th name. conn is nil if none answers. Its claim
// counts unless it is certain that the process has ended, or may not run on the core.
func (c Core) holder(k int) (conn net.Conn, counts bool) {
	conn, err := net.Dial("unix", "@"+c.lockName(k))
	if err != nil {
		return nil, !errors.Is(err, syscall.ECONNREFUSED)
	}
	var process *unix.Ucred // that has called listen; of another pid namespace: 0
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { process, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	}
	if err != nil || process == nil || process.Pid == 0 || mayRun(int(process.Pid), c.all) {
		return conn, true
	}
	_ = conn.Close()
	return nil, false
}

// mayRun reports whether a process lives and may run on one of these hyperthreads, or that cannot
// be told. A thread of it may be bound to others for a moment, so it looks at all threads.
func mayRun(pid int, cpus []int) bool {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	}
	for _, t := range threads {
		stat, _ := os.ReadFile(filepath.Join(tasks, t.Name(), "stat"))
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the first is the state
		if len(fields) == 0 || fields[0] == "Z" || fields[0] == "X" {
			continue // it has ended
		}
		thread, _ := strconv.Atoi(t.Name())
		usable, err := usableBy(thread)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil || slices.ContainsFunc(cpus, func(cpu int) bool { return slices.Contains(usable, cpu) }) {
			return true
		}
	}
	return false
}
