// Package cgroup reads the limits that control groups set for this process, or another one.
//
// # Model
//
// A limit is the lowest of those of this process's group and its visible parents, in control
// groups of both versions; see cgroups(7).
//
// # Failure
//
// No function fails: an unreadable file sets no limit.
package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Limit is a limit of a control group, set by File; if File is "", there is no such limit.
type Limit struct {
	Value float64
	File  string
}

// CPUQuota returns the CPU quota of this process's control groups, in cores. The files are
// below root: "" for this machine; tests pass a directory with the files of another.
func CPUQuota(root string) Limit {
	h := host{root, Self}
	return h.tightest("cpu", func(dir string, version int) Limit {
		file := filepath.Join(dir, "cpu.max")
		quota, period, _ := strings.Cut(h.contents(file), " ") // "150000 100000", or "max 100000"
		if version == 1 {
			file = filepath.Join(dir, "cpu.cfs_quota_us") // -1: none
			quota, period = h.contents(file), h.contents(filepath.Join(dir, "cpu.cfs_period_us"))
		}
		return Limit{number(quota) / number(period), file}
	})
}

// Self is this process.
const Self = "self"

// MemoryLimit returns the memory limit of the control groups of a process, Self or a process id,
// in bytes. Shared memory counts. For root see CPUQuota.
func MemoryLimit(root, process string) Limit {
	h := host{root, process}
	return h.tightest("memory", h.memoryLimit)
}

// MemoryFree returns how much memory, in bytes, the control groups of this process allow
// beside what is in use; 1 stands for none. Cached files that nobody has used lately count
// as free, since they give way. For root see CPUQuota.
func MemoryFree(root string) Limit {
	h := host{root, Self}
	return h.tightest("memory", func(dir string, version int) Limit {
		l := h.memoryLimit(dir, version)
		if l.Value > 0 {
			l.Value = max(1, l.Value-h.memoryUse(dir, version))
		}
		return l
	})
}

// MemoryUse returns of the memory limits of a process's control groups the one that is nearest, and
// how much is in use there, in bytes, as MemoryFree counts it. For root see CPUQuota, for the
// process MemoryLimit.
func MemoryUse(root, process string) (nearest Limit, used float64) {
	h := host{root, process}
	h.tightest("memory", func(dir string, version int) (free Limit) {
		l, n := h.memoryLimit(dir, version), h.memoryUse(dir, version)
		if l.Value > 0 && n/l.Value > used/max(1, nearest.Value) {
			nearest, used = l, n
		}
		return free
	})
	return nearest, used
}

// memoryUse returns the memory that a control group uses, without cached files that give way.
func (h host) memoryUse(dir string, version int) float64 {
	usage, inactive := "memory.current", "inactive_file "
	if version == 1 {
		usage, inactive = "memory.usage_in_bytes", "total_inactive_file "
	}

	used := number(h.contents(filepath.Join(dir, usage)))
	for line := range strings.Lines(h.contents(filepath.Join(dir, "memory.stat"))) {
		if cached, found := strings.CutPrefix(line, inactive); found {
			used -= number(cached)
		}
	}
	return used
}

// ProcessesFree returns how many processes and threads the control groups of this process allow
// beside those that there are; 1 stands for none. For root see CPUQuota.
func ProcessesFree(root string) Limit {
	h := host{root, Self}
	return h.tightest("pids", func(dir string, _ int) Limit {
		file := filepath.Join(dir, "pids.max")
		most := number(h.contents(file))
		if most == 0 {
			return Limit{}
		}
		return Limit{max(1, most-number(h.contents(filepath.Join(dir, "pids.current")))), file}
	})
}

// memoryLimit returns the limit of a control group; its Value is 0 if there is none.
func (h host) memoryLimit(dir string, version int) Limit {
	file := filepath.Join(dir, "memory.max")
	if version == 1 {
		file = filepath.Join(dir, "memory.limit_in_bytes")
	}
	return Limit{number(h.contents(file)), file}
}

// host is a machine, whose files are below root, and a process of it.
type host struct{ root, process string }

// contents returns a file, "" if it is unreadable.
func (h host) contents(name string) string {
	text, _ := os.ReadFile(h.root + name)
	return strings.TrimSpace(string(text))
}

// number returns 0 for an empty, invalid or negative number.
func number(text string) float64 {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0
	}
	return max(0, x)
}

// tightest returns the lowest of the limits that read finds in the process's control
// group and its parents, of both versions, since a machine can use both.
func (h host) tightest(controller string, read func(dir string, version int) Limit) (least Limit) {
	consider := func(dirs []string, version int) {
		for _, dir := range dirs {
			// Version 1 writes "no limit" as a huge number of pages.
			l := read(dir, version)
			if real := l.Value > 0 && l.Value < 1<<60; real && (least.File == "" || l.Value < least.Value) {
				least = l
			}
		}
	}
	consider(h.groups("cgroup", controller), 1)
	consider(h.groups("cgroup2", ""), 2)
	return least
}

// groups returns the directories of the process's control group and its visible parents.
func (h host) groups(fstype, controller string) (dirs []string) {
	mount, root, found := h.mount(func(m mounted) bool {
		return m.fstype == fstype && (controller == "" || hasWord(m.options, controller))
	})
	if !found {
		return nil
	}

	dir := mount
	if below, ok := strings.CutPrefix(h.ownGroup(controller), strings.TrimSuffix(root, "/")); ok {
		dir = filepath.Join(mount, below)
	}
	for ; len(dir) > len(mount); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return append(dirs, mount)
}

// ownGroup returns the name of the process's control group: in version 1 the group of a
// controller; with controller "" the group of version 2, which has all controllers.
func (h host) ownGroup(controller string) string {
	for line := range strings.Lines(h.contents("/proc/" + h.process + "/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // "4:memory:/a", "0::/a"
		if len(parts) == 3 && hasWord(parts[1], controller) {
			return parts[2]
		}
	}
	return ""
}

func hasWord(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

// mounted is a mount in /proc/self/mountinfo.
type mounted struct{ fstype, options string }

// mount returns the mount point of the first matching mount, and the directory of its
// file system that is mounted there.
func (h host) mount(wanted func(mounted) bool) (at, root string, found bool) {
	for line := range strings.Lines(h.contents("/proc/self/mountinfo")) {
		// "32 31 0:29 /root /at rw,relatime shared:1 - cgroup cgroup rw,cpu"
		before, after, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) >= 5 && len(what) >= 3 && wanted(mounted{what[0], what[2]}) {
			return where[4], where[3], true
		}
	}
	return "", "", false
}
