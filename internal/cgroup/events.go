package cgroup

import (
	"path/filepath"
	"strings"
)

// Event is a shortage that control groups count.
type Event struct{ controller, file1, file2, key string }

var (
	// OutOfMemory is a process that was killed, since the memory of a group ran out.
	OutOfMemory = Event{"memory", "memory.oom_control", "memory.events", "oom_kill "}
	// OutOfProcesses is a process or thread that a group had no room for.
	OutOfProcesses = Event{"pids", "pids.events", "pids.events", "max "}
)

// Counts returns how often the event has come in this process's control groups and their visible
// parents, by the files that count it. For root see CPUQuota.
func (e Event) Counts(root string) map[string]float64 {
	h, counts := host{root}, make(map[string]float64)
	read := func(dirs []string, name string) {
		for _, dir := range dirs {
			file := filepath.Join(dir, name)
			for line := range strings.Lines(h.contents(file)) {
				if n, ok := strings.CutPrefix(line, e.key); ok {
					counts[file] = number(n)
				}
			}
		}
	}

	read(h.groups("cgroup", e.controller), e.file1)
	read(h.groups("cgroup2", ""), e.file2)
	return counts
}
