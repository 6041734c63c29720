package doctor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asExamined makes the test binary print the findings about processes.
const asExamined = "TEST_DOCTOR_AS_EXAMINED"

func TestMain(m *testing.M) {
	if os.Getenv(asExamined) != "" {
		Processes(context.Background(), "", func(f Finding) { fmt.Print(lines([]Finding{f})) }, 2, 8)
		return
	}
	os.Exit(m.Run())
}

// examined returns the findings about processes, as lines, in a shell's process that first runs a command.
func examined(t *testing.T, before string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", before+` && exec "$0"`, os.Args[0])
	c.Env = append(os.Environ(), asExamined+"=1", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if strings.HasPrefix(before, "ulimit") {
		c.SysProcAttr = nil
	}
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil && c.SysProcAttr != nil {
		t.Skipf("this machine does not allow a mount of its own: %v %s", err, &errs)
	}
	require.NoError(t, err, "%s", &errs)
	return string(out)
}

// A file system that is full is told as such, and nothing else is blamed for it.
func TestFull(t *testing.T) {
	const mount = "mount --make-rprivate / && mount -t tmpfs -o size=1M,nr_inodes=10 tmpfs /dev/shm && "
	text := examined(t, mount+"! head -c 2M /dev/zero 2>/dev/null >/dev/shm/a")
	require.Regexp(t, `\A.*limits: .*\nproblem /dev/shm: it is full: 0 B of 1.0 MiB are left -> remove what dead jobs have left \(goccl doctor --clean\) .*\n\z`, text)
	text = examined(t, mount+"for i in 1 2 3 4 5 6 7 8 9; do : >/dev/shm/$i; done")
	require.Regexp(t, `\nproblem /dev/shm: it is full: no inode is left`, text)
	// With room for a page, the job has none.
	text = examined(t, mount+"head -c 1M /dev/zero >/dev/shm/a && truncate -s 1000K /dev/shm/a")
	require.Contains(t, text, ": there is room for none")
	require.Equal(t, 1, strings.Count(text, "problem "), text)
}

// A probe that finds no room says so, and those that need it are not tried.
func TestNoRoom(t *testing.T) {
	for _, p := range probes {
		require.Equal(t, enlarge, p.finding(fmt.Errorf("try: %w", unix.ENOSPC)).Do)
		require.Equal(t, "raise ulimit -n", p.finding(fmt.Errorf("try: %w", unix.EMFILE)).Do)
	}
	s := scratch{fd: 0, full: true}
	require.False(t, s.hasRoom())
}

// The limits that ranks reach are shown, and are a problem if ranks reach them at once.
func TestLimits(t *testing.T) {
	text := examined(t, "ulimit -n 1000")
	require.Regexp(t, `(?m)^ok limits: open files 1000 \(ulimit -n\), threads of this user \w+ \(ulimit -u\), file size unlimited \(ulimit -f\), `, text)
	require.Contains(t, examined(t, "ulimit -n 12"), "-> raise ulimit -n: 2 ranks need 23\n")
	text = examined(t, "ulimit -f 1000")
	require.Contains(t, text, "-> raise ulimit -f: 2 ranks need 6.2 MiB\n")
	require.NotContains(t, text, "--shm-size")

	root := prepared(t, map[string]string{
		"/proc/self/cgroup":             "0::/a\n",
		"/proc/self/mountinfo":          "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/pids.max":       "max\n",
		"/sys/fs/cgroup/a/pids.max":     "100\n",
		"/sys/fs/cgroup/a/pids.current": "40\n",
	})
	f := limits(root, 4)
	require.Equal(t, OK, f.Verdict)
	require.Contains(t, f.Says, "more threads 60 (/sys/fs/cgroup/a/pids.max)")
	f = limits(root, 7) // goccl run starts as many, and no more
	require.Equal(t, Note, f.Verdict)
	require.Equal(t, "raise /sys/fs/cgroup/a/pids.max: 7 ranks need 59 at once, and soon 90", f.Do)
	f = limits(root, 8)
	require.Equal(t, Problem, f.Verdict)
	require.Equal(t, "raise /sys/fs/cgroup/a/pids.max: 8 ranks need 100", f.Do)
	require.Contains(t, limits(t.TempDir(), 2).Says, "more threads unlimited (pids.max)")
}
