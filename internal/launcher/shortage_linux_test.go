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
			write := func(name, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(root+name), 0o700))
				require.NoError(t, os.WriteFile(root+name, []byte(text), 0o600))
			}
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

// A process that was killed since the machine had no memory names no limit where there is none.
func TestShortages(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(root+name), 0o700))
		require.NoError(t, os.WriteFile(root+name, []byte(text), 0o600))
	}
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
