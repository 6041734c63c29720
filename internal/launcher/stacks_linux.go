package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// askStacks sends SIGQUIT to the processes of a rank's group that handle it, as Go programs do by
// showing their stacks, and SIGTERM to the others, which would only die of it and might dump their
// memory. It reports whether it has asked any; otherwise it has sent nothing.
func askStacks(group int) bool {
	asked, others := signalHandlers(group, syscall.SIGQUIT)
	if len(asked) == 0 {
		return false
	}
	for _, pid := range others {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	return true
}

// signalHandlers sends a signal to those processes of a group that handle it, and returns them and
// the others.
func signalHandlers(group int, s syscall.Signal) (asked, others []int) {
	for _, pid := range processesOf(group) {
		if !handles(pid, s) {
			others = append(others, pid)
			continue
		}
		asked = append(asked, pid)
		_ = syscall.Kill(pid, s) // it may have ended
	}
	return asked, others
}

// processesOf returns the processes of a group; none if it cannot list them.
func processesOf(group int) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if of, err := unix.Getpgid(pid); err == nil && of == group {
			pids = append(pids, pid)
		}
	}
	return pids
}

// handles reports whether a process has a handler for a signal.
func handles(pid int, s syscall.Signal) bool {
	mask, err := strconv.ParseUint(statusOf(pid, "SigCgt"), 16, 64)
	return err == nil && mask&(1<<(s-1)) != 0
}

// isStopped reports whether a signal or a debugger has stopped a process of a group.
func isStopped(group int) bool {
	return slices.ContainsFunc(processesOf(group), func(pid int) bool {
		state := statusOf(pid, "State")
		return strings.HasPrefix(state, "T") || strings.HasPrefix(state, "t")
	})
}

// isDead reports whether all processes of a group have ended, although no parent has waited for
// them.
func isDead(group int) bool {
	pids := processesOf(group)
	return len(pids) > 0 && !slices.ContainsFunc(pids, isRunning)
}

// isRunning reports whether a process has not ended.
func isRunning(pid int) bool {
	state := statusOf(pid, "State")
	return state != "" && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// statusOf returns a field of a process's status, or "".
func statusOf(pid int, field string) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte(field+":")); ok {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// awaitEnd waits until a process has ended, and returns the limit of its CPU time, or 0.
func awaitEnd(pid int) time.Duration {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), syscall.EINTR) {
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &limit); err != nil || limit.Max > math.MaxInt32 {
		return 0
	}
	return time.Duration(limit.Max) * time.Second
}
