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
	// OutOfTime is a period in which a group was stopped, since it had used up its CPU quota.
	OutOfTime = Event{"cpu", "cpu.stat", "cpu.stat", "nr_throttled "}
)

// Counts returns how often the event has come in the control groups of a process and their visible
// parents, by the files that count it. For root see CPUQuota, for the process MemoryLimit.
func (e Event) Counts(root, process string) map[string]float64 {
	h, counts := host{root, process}, make(map[string]float64)
	read := func(dirs []string, name string) {
		for _, dir := range dirs {
			file := filepath.Join(dir, name)
			if n, ok := e.CountIn(root, file); ok {
				counts[file] = n
			}
		}
	}

	read(h.groups("cgroup", e.controller), e.file1)
	read(h.groups("cgroup2", ""), e.file2)
	return counts
}

// CountIn returns how often the event has come by a file of Counts, and whether that can be read.
func (e Event) CountIn(root, file string) (n float64, ok bool) {
	for line := range strings.Lines(host{root: root}.contents(file)) {
		if count, found := strings.CutPrefix(line, e.key); found {
			n, ok = number(count), true
		}
	}
	return n, ok
}
