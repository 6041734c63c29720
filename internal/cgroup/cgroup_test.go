package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Limits of both versions are found, at every level, wherever they are mounted.
func TestControlGroups(t *testing.T) {
	const (
		v2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		v1 = "33 30 0:30 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n35 30 0:31 / /cg/memory rw - cgroup cgroup rw,memory\n"
	)
	for name, c := range map[string]struct {
		files       map[string]string
		cpu, memory Limit
		free        float64 // memory; 0: the whole limit
	}{
		"none": {},
		"version 2, unlimited": {files: map[string]string{
			"/proc/self/mountinfo": v2, "/proc/self/cgroup": "0::/a\n",
			"/sys/fs/cgroup/a/cpu.max": "max 100000\n", "/sys/fs/cgroup/a/memory.max": "max\n",
		}},
		"version 2, the least of all levels": {
			files: map[string]string{
				"/proc/self/mountinfo": v2, "/proc/self/cgroup": "0::/a/b/c\n",
				"/sys/fs/cgroup/a/cpu.max": "200000 100000\n", "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "/sys/fs/cgroup/a/b/c/cpu.max": "400000 100000\n",
				"/sys/fs/cgroup/a/memory.max": "4096\n", "/sys/fs/cgroup/a/b/c/memory.max": "1024\n",
				"/sys/fs/cgroup/x/cpu.max": "1 100000\n",
			},
			cpu: Limit{2, "/sys/fs/cgroup/a/cpu.max"}, memory: Limit{1024, "/sys/fs/cgroup/a/b/c/memory.max"},
		},
		"version 1": {
			files: map[string]string{
				"/proc/self/mountinfo": v1, "/proc/self/cgroup": "4:memory:/m\n2:cpu,cpuacct:/c\n",
				"/cg/cpu,cpuacct/c/cpu.cfs_quota_us": "50000\n", "/cg/cpu,cpuacct/c/cpu.cfs_period_us": "100000\n",
				"/cg/cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "/cg/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
				"/cg/memory/m/memory.limit_in_bytes": "9223372036854771712\n", "/cg/memory/memory.limit_in_bytes": "2048\n",
			},
			cpu: Limit{0.5, "/cg/cpu,cpuacct/c/cpu.cfs_quota_us"}, memory: Limit{2048, "/cg/memory/memory.limit_in_bytes"},
		},
		"version 2, used in part": {
			files: map[string]string{
				"/proc/self/mountinfo": v2, "/proc/self/cgroup": "0::/a/b\n",
				"/sys/fs/cgroup/a/memory.max": "4096\n", "/sys/fs/cgroup/a/memory.current": "4000\n",
				"/sys/fs/cgroup/a/memory.stat":  "anon 900\ninactive_file 500\nworkingset_inactive_file 7\n",
				"/sys/fs/cgroup/a/b/memory.max": "2048\n", "/sys/fs/cgroup/a/b/memory.current": "100\n",
				"/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory.current": "9999\n",
			},
			memory: Limit{2048, "/sys/fs/cgroup/a/b/memory.max"}, free: 596,
		},
		"version 1, used up": {
			files: map[string]string{
				"/proc/self/mountinfo": v1, "/proc/self/cgroup": "4:memory:/m\n",
				"/cg/memory/m/memory.limit_in_bytes": "4096\n", "/cg/memory/m/memory.usage_in_bytes": "5000\n",
				"/cg/memory/m/memory.stat":         "inactive_file 900\ntotal_inactive_file 100\n",
				"/cg/memory/memory.limit_in_bytes": "9223372036854771712\n", "/cg/memory/memory.usage_in_bytes": "6000\n",
			},
			memory: Limit{4096, "/cg/memory/m/memory.limit_in_bytes"}, free: 1,
		},
		"version 1 for one, version 2 for the other": {
			files: map[string]string{
				"/proc/self/mountinfo": v1 + v2, "/proc/self/cgroup": "4:memory:/m\n0::/u\n",
				"/cg/memory/m/memory.limit_in_bytes": "8192\n", "/sys/fs/cgroup/u/cpu.max": "300000 100000\n",
			},
			cpu: Limit{3, "/sys/fs/cgroup/u/cpu.max"}, memory: Limit{8192, "/cg/memory/m/memory.limit_in_bytes"},
		},
		"a container that sees its own group only": {
			files: map[string]string{
				"/proc/self/mountinfo": "29 23 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/proc/self/cgroup": "0::/docker/1/sub\n",
				"/sys/fs/cgroup/sub/cpu.max": "100000 100000\n",
			},
			cpu: Limit{1, "/sys/fs/cgroup/sub/cpu.max"},
		},
		"a group outside of what is mounted": {
			files: map[string]string{
				"/proc/self/mountinfo": "29 23 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/proc/self/cgroup": "0::/other\n",
				"/sys/fs/cgroup/cpu.max": "100000 100000\n",
			},
			cpu: Limit{1, "/sys/fs/cgroup/cpu.max"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(root+name), 0o700))
				require.NoError(t, os.WriteFile(root+name, []byte(text), 0o600))
			}
			require.Equal(t, c.cpu, CPUQuota(root))
			require.Equal(t, c.memory, MemoryLimit(root, Self))
			if c.free == 0 {
				c.free = c.memory.Value
			}
			require.Equal(t, c.free, MemoryFree(root).Value)
		})
	}
}

// Events are counted in both versions, at every level.
func TestEvents(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"/proc/self/mountinfo": "29 23 0:26 / /two rw - cgroup2 cgroup2 rw\n35 30 0:31 / /one/memory rw - cgroup cgroup rw,memory\n36 30 0:32 / /one/pids rw - cgroup cgroup rw,pids\n",
		"/proc/self/cgroup":    "4:memory:/m\n3:pids:/p\n0::/a/b\n",
		"/two/a/memory.events": "low 0\noom 5\noom_kill 2\n", "/two/a/b/memory.events": "oom_kill 1\n",
		"/one/memory/m/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
		"/one/pids/p/pids.events":          "max 4\n", "/two/a/pids.events": "max 0\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(root+name), 0o700))
		require.NoError(t, os.WriteFile(root+name, []byte(text), 0o600))
	}
	require.Equal(t, map[string]float64{"/two/a/memory.events": 2, "/two/a/b/memory.events": 1, "/one/memory/m/memory.oom_control": 3}, OutOfMemory.Counts(root, Self))
	require.Equal(t, map[string]float64{"/one/pids/p/pids.events": 4, "/two/a/pids.events": 0}, OutOfProcesses.Counts(root, Self))
	require.Empty(t, OutOfMemory.Counts(t.TempDir(), Self))
}
