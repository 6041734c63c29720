package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/internal/cgroup"
)

// prepared returns the root of a machine with these files.
func prepared(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := root + name
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

func noVariables(string) string { return "" }

func variables(all map[string]string) func(string) string {
	return func(name string) string { return all[name] }
}

// lines returns the findings as the text shows them.
func lines(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(strings.TrimSpace(string(f.Verdict)+" "+f.Name+": "+f.Says+" -> "+f.Do) + "\n")
	}
	return b.String()
}

func TestMachine(t *testing.T) {
	root := prepared(t, map[string]string{
		"/proc/meminfo":                                     "MemTotal: 2097152 kB\nMemFree: 1 kB\nMemAvailable: 1572864 kB\n",
		"/proc/self/cgroup":                                 "0::/\n",
		"/proc/self/mountinfo":                              "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/cpu.max":                            "150000 100000\n",
		"/sys/fs/cgroup/memory.max":                         "1073741824\n",
		"/sys/fs/cgroup/memory.current":                     "805306368\n",
		"/sys/devices/system/cpu/online":                    "0-3,8\n",
		"/sys/devices/system/node/online":                   "0-1\n",
		"/sys/kernel/mm/transparent_hugepage/enabled":       "always [madvise] never\n",
		"/sys/kernel/mm/transparent_hugepage/shmem_enabled": "always within_size advise [never] deny force\n",
		"/.dockerenv":                                       "",
	})
	require.NoError(t, os.MkdirAll(root+"/proc/self/ns", 0o700))
	require.NoError(t, os.Symlink("pid:[4026532001]", root+"/proc/self/ns/pid"))
	m := measure.Machine{CPU: "A", Caches: "L1d 48K", Cores: 4, GOMAXPROCS: 2, OS: "linux", Arch: "riscv64", Kernel: "6.1", Go: "go1.26"}
	text := lines(Machine(m, root, variables(map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"})))
	for _, line := range []string{
		"note cores: 4 usable of 5, quota of 1.5 (/sys/fs/cgroup/cpu.max); GOMAXPROCS 2 by the quota -> " +
			"2 ranks that poll use up the quota, and then nothing runs until its next period: set GOMAXPROCS=1, or allow more",
		"ok cpu: A; L1d 48K ->",
		"ok memory: 2.0 GiB, 1.5 GiB available; limit of 1.0 GiB (/sys/fs/cgroup/memory.max), shared memory included; 256.0 MiB free in control groups ->",
		"note NUMA: 2 nodes -> bind a job that fits to one node (numactl --cpunodebind=0 --membind=0); otherwise prefer goccl run, which keeps neighbouring ranks on one node",
		"ok huge pages: transparent: madvise; for shared memory: never ->",
		"ok system: linux/riscv64 6.1; go1.26 ->",
		"ok container: signs of one: /.dockerenv, KUBERNETES_SERVICE_HOST=10.0.0.1, a namespace of processes of its own; the ranks of a job have to share /dev/shm: start them in one ->",
	} {
		require.Contains(t, text, line+"\n")
	}
}

// Without its files a machine is unknown, which is not a problem.
func TestUnknownMachine(t *testing.T) {
	findings := Machine(measure.Machine{Cores: 2, GOMAXPROCS: 2, OS: "plan9", Arch: "mips"}, t.TempDir(), noVariables)
	require.Zero(t, Count(findings, Problem))
	text := lines(findings)
	require.Contains(t, text, "ok cores: 2 usable, no quota; GOMAXPROCS 2 ->\n")
	for _, name := range []string{"cpu", "memory", "NUMA"} {
		require.Contains(t, text, "ok "+name+": unknown ->\n")
	}
	require.Contains(t, text, "ok huge pages: transparent: unknown; for shared memory: unknown ->\n")
}

func TestCores(t *testing.T) {
	quota := func(cores float64) cgroup.Limit { return cgroup.Limit{Value: cores, File: "cpu.max"} }
	for _, c := range []struct {
		p       processors
		verdict Verdict
		says    string
	}{
		{processors{online: 8, usable: 8, gomaxprocs: 8}, OK, "8 usable of 8, no quota; GOMAXPROCS 8"},
		{processors{online: 8, usable: 4, gomaxprocs: 4, quota: quota(4)}, OK, "4 usable of 8, quota of 4 (cpu.max); GOMAXPROCS 4"},
		{processors{online: 8, usable: 8, gomaxprocs: 4, quota: quota(4)}, OK, "GOMAXPROCS 4 by the quota"},
		{processors{online: 8, usable: 8, gomaxprocs: 3, quota: quota(2.5)}, Note, "GOMAXPROCS 3 by the quota"},
		{processors{online: 8, usable: 8, gomaxprocs: 2, quota: quota(0.5)}, Note, "quota of 0.5"},
		{processors{online: 8, usable: 8, gomaxprocs: 16, asked: "16"}, Note, "GOMAXPROCS 16 by the environment"},
		{processors{online: 8, usable: 8, gomaxprocs: 2, asked: "2"}, Note, "GOMAXPROCS 2 by the environment"},
		{processors{usable: 1, gomaxprocs: 1}, Note, "1 usable, no quota; GOMAXPROCS 1"},
		{processors{online: 2, usable: 1, gomaxprocs: 2, asked: "2", pinned: true}, OK, "1 usable of 2, no quota; GOMAXPROCS 2 by the environment"},
	} {
		f := c.p.finding()
		require.Equal(t, c.verdict, f.Verdict, f.Says)
		require.Contains(t, f.Says, c.says)
		require.Equal(t, c.verdict == Note, f.Do != "")
	}
	require.Contains(t, processors{usable: 8, gomaxprocs: 2, quota: quota(0.5)}.finding().Do, "allow at least one core")
	// Who has done what doctor says is told nothing else.
	require.Contains(t, processors{usable: 8, gomaxprocs: 2, quota: quota(1.5)}.finding().Do, "set GOMAXPROCS=1,")
	require.Equal(t, OK, processors{usable: 8, gomaxprocs: 1, asked: "1", quota: quota(1.5)}.finding().Verdict)
}

func TestVectors(t *testing.T) {
	require.Equal(t, OK, vectors("amd64", "AVX2 and AVX-512", "", "").Verdict)
	require.Equal(t, OK, vectors("arm64", "Go", "", "").Verdict)
	require.Contains(t, vectors("arm64", "Go", "", "").Says, "assembly for amd64 only")
	for _, f := range []Finding{
		vectors("amd64", "Go", "netgo,noasm", ""), vectors("amd64", "Go", "", "true"), vectors("amd64", "Go", "", ""),
	} {
		require.Equal(t, Note, f.Verdict)
	}
	require.Contains(t, vectors("amd64", "Go", "netgo,noasm", "").Says, "-tags noasm")
	require.Contains(t, vectors("amd64", "Go", "", "true").Says, "-race")
	require.Contains(t, vectors("amd64", "Go", "", "").Says, "no AVX2")
}

func TestAmount(t *testing.T) {
	for want, bytes := range map[string]float64{"0 B": 0, "1023 B": 1023, "1.0 KiB": 1024, "1.5 MiB": 1.5 * (1 << 20), "2048.0 GiB": 1 << 41} {
		require.Equal(t, want, Amount(bytes))
	}
}

func TestLauncher(t *testing.T) {
	f, ranks := Launcher(noVariables)
	require.Equal(t, OK, f.Verdict)
	require.Zero(t, ranks)
	f, ranks = Launcher(variables(map[string]string{"GOCCL_SHM_NAME": "/train", "GOCCL_SHM_RANK": "1", "GOCCL_SHM_SIZE": "3"}))
	require.Equal(t, OK, f.Verdict)
	require.Contains(t, f.Says, "rank 1 of 3 by the variables of goccl run")
	require.Contains(t, f.Says, "its job is train")
	require.Equal(t, 3, ranks)
	f, _ = Launcher(variables(map[string]string{"GOCCL_SHM_RANK": "1"}))
	require.Equal(t, Problem, f.Verdict)
	require.Contains(t, f.Says, "GOCCL_SHM_NAME and GOCCL_SHM_SIZE are not set")
	f, _ = Launcher(variables(map[string]string{
		"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "7",
	}))
	require.Equal(t, Note, f.Verdict)
	require.Contains(t, f.Says, "only 2 of them are on this node")
	require.Contains(t, f.Do, "transport tcp connects them, with MASTER_ADDR, MASTER_PORT and a secret")
	require.Contains(t, f.Do, "transport/mpi")
}

// Processes that were killed at a memory limit are counted, each once.
func TestKilledForMemory(t *testing.T) {
	root := prepared(t, map[string]string{
		"/proc/self/cgroup":              "0::/a\n",
		"/proc/self/mountinfo":           "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/memory.events":   "oom 9\noom_kill 3\n",
		"/sys/fs/cgroup/a/memory.events": "oom 9\noom_kill 2\n",
	})
	require.Contains(t, host{root}.memory().Says, "; 3 processes of the control groups were killed at a limit")
	require.NotContains(t, host{t.TempDir()}.memory().Says, "killed")
}
