package launcher

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// reapOrphans waits for dead children of this process that the launcher has not started: processes
// that the ranks have started and left, if this is process 1 of a container or a subreaper.
func (l *launcher) reapOrphans() {
	if !l.OwnsChildren {
		return
	}
	started := []int{l.keeper.process.Pid}
	for i := range l.ranks {
		started = append(started, l.ranks[i].PID)
	}

	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list) // its thread may have ended
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err == nil && !slices.Contains(started, pid) && strings.HasPrefix(statusOf(pid, "State"), "Z") {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // it is dead
			}
		}
	}
}
