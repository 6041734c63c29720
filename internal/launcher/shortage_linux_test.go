package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of a rank that has moved to another control group, that one counts from then on, in both versions.
func TestShortageOfRank(t *testing.T) {
	for name, c := range map[string]struct{ mounts, parent, groups, counter, limit string }{
		"version 2": {"30 23 0:28 / /two rw - cgroup2 cgroup2 rw\n", "0::/job\n", "0::/job/a\n", "/two/job/a/memory.events", "/two/job/a/memory.max"},
		"version 1": {"35 30 0:31 / /one rw - cgroup cgroup rw,memory\n", "4:memory:/job\n", "4:memory:/a\n", "/one/a/memory.oom_control", "/one/a/memory.limit_in_bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := writesUnder(t, root)
			l := &launcher{ranks: make([]rank, 2)}
			for i := range l.ranks {
				l.ranks[i].PID, l.ranks[i].running = 70+i, true
				write(fmt.Sprintf("/proc/%d/cgroup", 70+i), c.parent)
			}
			write("/proc/self/mountinfo", c.mounts)
			write("/proc/self/cgroup", c.parent)
			write(c.counter, "oom_kill 3\n")
			write(c.limit, "67108864\n")
			l.noteGroups(root)
			write("/proc/71/cgroup", c.groups)
			l.noteGroups(root)
			require.Empty(t, l.ranks[1].groups.describe(root))
			write(c.counter, "oom_kill 4\n")
			l.noteGroups(root)
			require.Equal(t, "; the control group ran out of memory: its limit is 64 MiB ("+c.limit+")", l.ranks[1].groups.describe(root))
			require.Empty(t, l.ranks[0].groups)
		})
	}
}

// writesUnder returns a function that writes a file below a directory.
func writesUnder(t *testing.T, root string) func(name, text string) {
	return func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(root+name), 0o700))
		require.NoError(t, os.WriteFile(root+name, []byte(text), 0o600))
	}
}

// A process that was killed since the machine had no memory names no limit where there is none.
func TestShortages(t *testing.T) {
	root := t.TempDir()
	write := writesUnder(t, root)
	write("/proc/self/cgroup", "0::/a\n")
	write("/proc/self/mountinfo", "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	write("/sys/fs/cgroup/a/memory.events", "oom 0\noom_kill 3\n")
	write("/sys/fs/cgroup/a/pids.events", "max 7\n")
	before := countShortages(root)
	require.Equal(t, "; if nobody has killed it, see dmesg, and the memory.events of its control group", before.describe(root, true))
	require.Empty(t, before.describe(root, false))

	write("/sys/fs/cgroup/a/memory.events", "oom 0\noom_kill 4\n")
	write("/sys/fs/cgroup/a/pids.events", "max 9\n")
	require.Equal(t, "; the machine ran out of memory", before.describe(root, true))
	require.Equal(t, "; the control group refused 2 processes or threads (/sys/fs/cgroup/a/pids.events): raise its pids.max", before.describe(root, false))
	killed := Rank{Signal: syscall.SIGKILL}
	e := &EndedError{Ranks: []Rank{killed, killed}, Cause: CauseAlike, Blamed: []int{0, 1}, Shortage: before.describe(root, true)}
	require.Regexp(t, `^all ranks failed alike: the job failed after 0s; the machine ran out of memory\n`, e.Error())
	write("/sys/fs/cgroup/a/memory.max", "67108864\n")
	require.Equal(t, "; the control group ran out of memory: its limit is 64 MiB (/sys/fs/cgroup/a/memory.max)", before.describe(root, true))
}

// A control group of ranks that is near its memory limit is warned of once, with the rank that has
// the most. Of nested groups the nearest counts, in both versions.
func TestNearMemoryLimit(t *testing.T) {
	const mib, pages = 1 << 20, 256 // of 4 KiB
	unlimited, v2 := "max", "30 23 0:28 / /two rw - cgroup2 cgroup2 rw\n"
	own := fmt.Sprintf("rank 6 (pid %d) the most, 400 MiB: at the limit the kernel kills a process", hugePID+6)
	for name, c := range map[string]struct {
		mounts, groups, usage, stat, limit string
		limits                             [3]string // of /, /job and /job/a
		used                               [3]int    // MiB
		cached                             int       // MiB, in /job/a
		want                               string
	}{
		"the group":      {v2, "0::/job/a\n", "memory.current", "inactive_file", "memory.max", [3]string{unlimited, unlimited, fmt.Sprint(1024 * mib)}, [3]int{3000, 3000, 930}, 0, "uses 930 of its 1024 MiB of memory (/two/job/a/memory.max), "},
		"its parent":     {v2, "0::/job/a\n", "memory.current", "inactive_file", "memory.max", [3]string{unlimited, fmt.Sprint(2048 * mib), fmt.Sprint(1024 * mib)}, [3]int{3000, 1900, 500}, 0, "uses 1900 of its 2048 MiB of memory (/two/job/memory.max), "},
		"far":            {v2, "0::/job/a\n", "memory.current", "inactive_file", "memory.max", [3]string{unlimited, fmt.Sprint(2048 * mib), fmt.Sprint(1024 * mib)}, [3]int{3000, 1800, 920}, 0, ""},
		"cached files":   {v2, "0::/job/a\n", "memory.current", "inactive_file", "memory.max", [3]string{unlimited, unlimited, fmt.Sprint(1024 * mib)}, [3]int{3000, 3000, 1024}, 200, ""},
		"without limits": {v2, "0::/job/a\n", "memory.current", "inactive_file", "memory.max", [3]string{unlimited, unlimited, unlimited}, [3]int{3000, 3000, 3000}, 0, ""},
		"version 1": {
			"35 30 0:31 / /two rw - cgroup cgroup rw,memory\n", "4:memory:/job/a\n", "memory.usage_in_bytes", "total_inactive_file", "memory.limit_in_bytes",
			[3]string{"9223372036854771712", "9223372036854771712", fmt.Sprint(1024 * mib)}, [3]int{3000, 3000, 1000}, 50, "uses 950 of its 1024 MiB of memory (/two/job/a/memory.limit_in_bytes), ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(name, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(root+name), 0o700))
				require.NoError(t, os.WriteFile(root+name, []byte(text+"\n"), 0o600))
			}
			var warnings []Warning
			job := testJob(8, "echo")
			job.Warn = func(w Warning) { warnings = append(warnings, w) }
			l := &launcher{Spec: job, attempt: newAttempt(&Restarts{}), ranks: make([]rank, 8)}
			for i := range l.ranks {
				l.ranks[i].PID, l.ranks[i].running = hugePID+i, i > 0
				write(fmt.Sprintf("/proc/%d/statm", hugePID+i), fmt.Sprint("999999999 ", (100+50*(i%7))*pages*4096/os.Getpagesize(), " 0 0 0 0 0"))
			}
			write("/proc/self/mountinfo", c.mounts)
			write("/proc/self/cgroup", c.groups)
			for i, dir := range []string{"/two/", "/two/job/", "/two/job/a/"} {
				write(dir+c.limit, c.limits[i])
				write(dir+c.usage, fmt.Sprint(c.used[i]*mib))
				write(dir+"memory.stat", fmt.Sprint(c.stat, " ", c.cached*mib))
			}
			for range 3 {
				l.warnOfMemory(root)
			}
			if c.want == "" {
				require.Empty(t, warnings)
				return
			}
			require.Equal(t, []Warning{{Rank: 6, Text: "the control group " + c.want + own}}, warnings)
		})
	}
}

// hugePID is more than the number of a process can be.
const hugePID = 1 << 23

// Ranks of other control groups than the launcher's are warned of by group, and a rank that has
// started later is not warned of again in the same one.
func TestNearMemoryLimitOfRank(t *testing.T) {
	root := t.TempDir()
	write := writesUnder(t, root)
	var warned []int
	job := testJob(3, "echo")
	job.Warn = func(w Warning) { warned = append(warned, w.Rank) }
	l := &launcher{Spec: job, attempt: newAttempt(&Restarts{}), ranks: make([]rank, 3)}
	for i := range l.ranks {
		r := &l.ranks[i]
		r.PID, r.running = hugePID+i, true
		write(fmt.Sprintf("/proc/%d/cgroup", r.PID), "0::/b\n")
		write(fmt.Sprintf("/proc/%d/statm", r.PID), fmt.Sprint("100 ", 10+i%2))
	}
	write("/proc/self/mountinfo", "30 23 0:28 / /two rw - cgroup2 cgroup2 rw\n")
	write("/proc/self/cgroup", "0::/a\n")
	write("/two/b/memory.max", "1000\n")
	write("/two/b/memory.current", "899\n")
	l.noteGroups(root)
	l.warnOfMemory(root)
	require.Empty(t, warned)
	write("/two/b/memory.current", "900\n")
	l.warnOfMemory(root)
	l.warnOfMemory(root)
	require.Equal(t, []int{1}, warned)
}

// Ranks that waited in vain may have had no CPU time.
func TestShortageOfTime(t *testing.T) {
	root := t.TempDir()
	write := writesUnder(t, root)
	write("/proc/self/cgroup", "0::/a/b\n")
	write("/proc/self/mountinfo", "30 23 0:28 / /two rw - cgroup2 cgroup2 rw\n")
	write("/two/a/cpu.max", "150000 100000\n")
	write("/two/a/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 4\n")
	write("/two/a/b/cpu.stat", "nr_throttled 0\n")
	before := countShortages(root)
	require.Empty(t, before.describeQuota(root))
	write("/two/a/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 44\n")
	text := before.describeQuota(root)
	require.Equal(t, "; the control group was out of CPU time 40 times: its quota is 1.5 cores (/two/a/cpu.max)", text)
	e := &EndedError{Ranks: make([]Rank, 2), Cause: CauseSilent, Blamed: []int{1}, First: 1, Shortage: text}
	require.Regexp(t, `^rank 1 \(pid 0\) was waited for in vain: the job failed after 0s; the control group was out of CPU time 40 times: .*\n`, e.Error())
}
