package processes

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// groupVariable names a control group that the rank enters which starts threads without end: in the group of all
// ranks another one may be the first to crash.
const groupVariable = "TEST_GOCCL_GROUP"

func init() { // they know each other
	ways["memory"] = func([]float32) error {
		for all := [][]byte(nil); ; {
			all = append(all, make([]byte, 1<<20))
			for i := range all[len(all)-1] {
				all[len(all)-1][i] = 1
			}
		}
	}
	ways["much-memory"] = func([]float32) error {
		for all := [][]byte(nil); usedIn(os.Getenv(groupVariable)) < nearGroup*94/100; {
			all = append(all, make([]byte, 1<<20))
			for i := range all[len(all)-1] {
				all[len(all)-1][i] = 1
			}
		}
		// Until the test has seen the warning. The runtime ends a process that waits without a timer.
		<-time.After(time.Hour)
		return nil
	}
	ways["threads"] = func([]float32) error {
		if dir := os.Getenv(groupVariable); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(fmt.Sprint(os.Getpid())), 0o600); err != nil {
				return err
			}
		}
		for {
			go func() {
				runtime.LockOSThread()
				select {}
			}()
		}
	}
}

// nearGroup is the memory limit of a group that a rank nears, in bytes.
const nearGroup = 256 << 20

// usedIn returns the memory that a control group uses, in bytes, without the files that it can give back.
func usedIn(dir string) (used int) {
	for file, pattern := range map[string]string{
		"memory.current": `^(\d+)`, "memory.usage_in_bytes": `^(\d+)`, "memory.stat": `(?m)^(?:total_)?inactive_file (\d+)$`,
	} {
		text, _ := os.ReadFile(filepath.Join(dir, file)) // of version 1 or 2
		found := regexp.MustCompile(pattern).FindAllSubmatch(text, -1)
		if len(found) == 0 {
			continue
		}
		n, err := strconv.Atoi(string(found[len(found)-1][1]))
		if err != nil {
			panic(err)
		}
		if file == "memory.stat" {
			n = -n
		}
		used += n
	}
	return used
}

// limitFiles allows this process no more files than are open.
func limitFiles() {
	_, file, err := os.Pipe() // and the runtime's own are open from now on
	if err != nil {
		panic(err)
	}
	limit := uint64(file.Fd()) + 1
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		panic(err)
	}
}

// makeGroup makes a control group with a limit of "memory" or "pids". It skips the test where it may make none.
func makeGroup(t *testing.T, controller, limit string) (dir string) {
	t.Helper()
	dir, file := filepath.Join("/sys/fs/cgroup", controller), map[string]string{"memory": "memory.limit_in_bytes", "pids": "pids.max"}[controller]
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // version 2
		dir, file = "/sys/fs/cgroup", map[string]string{"memory": "memory.max", "pids": "pids.max"}[controller]
	}
	dir, err := os.MkdirTemp(dir, "goccl-test-")
	if err != nil {
		t.Skip("control groups cannot be made here: ", err)
	}
	t.Cleanup(func() {
		for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // until its processes have died
			if err := os.Remove(dir); err == nil {
				return
			} else if time.Now().After(late) {
				t.Error(err)
				return
			}
		}
	})
	if err := os.WriteFile(filepath.Join(dir, file), []byte(limit), 0o600); err != nil {
		t.Skip("control groups have no limits here: ", err)
	}
	return dir
}

// killedIn returns how many processes of a control group the kernel has killed because its memory ran out.
func killedIn(t *testing.T, dir string) (killed int) {
	t.Helper()
	for _, file := range []string{"memory.oom_control", "memory.events"} { // of version 1 and 2
		text, _ := os.ReadFile(filepath.Join(dir, file))
		if found := regexp.MustCompile(`(?m)^oom_kill (\d+)$`).FindSubmatch(text); found != nil {
			n, err := strconv.Atoi(string(found[1]))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the control group does not count whom the kernel has killed")
	return 0
}

// inGroup makes a command, and what it starts, run in a new control group.
func inGroup(t *testing.T, c *exec.Cmd, controller, limit string) (dir string) {
	t.Helper()
	dir = makeGroup(t, controller, limit)
	path := c.Path
	if path == "/proc/self/exe" { // in a shell it is another one
		path = program(t)
	}
	c.Args = slices.Concat([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, dir, path}, c.Args[1:])
	c.Path = "/bin/sh"
	return dir
}

// Where the control group has no room for the processes of a job, goccl run says so, and does not crash.
func TestFewProcesses(t *testing.T) {
	tool := buildTool(t)
	for limit, want := range map[string]string{
		"20": `^goccl: error: the control group allows \d+ more processes and threads \(/sys/fs/cgroup/\S*pids.max\): 3 ranks and their launcher need \d+`,
		"45": `^goccl: error: .*; the control group refused \d+ processes or threads \(/sys/fs/cgroup/\S*pids.events\)`,
	} {
		for i := range 1 + *outcomes/2 {
			t.Run(fmt.Sprint(limit, " ", i), func(t *testing.T) {
				c := exec.Command(tool, "run", "-n", "3", "--output", filepath.Join(t.TempDir(), "out"), program(t))
				c.Env = append(clean(os.Environ()), failingVariable+"=threads 1 2", "GOMAXPROCS=2")
				inGroup(t, c, "pids", limit)
				text, _ := c.CombinedOutput()
				if !regexp.MustCompile(want).Match(text) || strings.Contains(string(text), "\ngoroutine ") {
					t.Errorf("want %s, got %s", want, text)
				}
			})
		}
	}
}

// goccl run warns of a rank that nears the memory limit of the job's control group, before the kernel kills it.
func TestNearMemoryLimit(t *testing.T) {
	c := exec.Command(buildTool(t), "run", "-n", fmt.Sprint(failingRanks), program(t))
	c.Env = append(clean(os.Environ()), failingVariable+"=much-memory 2 3", "GOMAXPROCS=2")
	dir := inGroup(t, c, "memory", fmt.Sprint(nearGroup))
	c.Env = append(c.Env, groupVariable+"="+dir)
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(patience, func() { _ = c.Process.Kill() })
	defer hung.Stop()
	want := regexp.MustCompile(`^goccl: warning: the control group uses \d+ of its 256 MiB of memory \(/sys/fs/cgroup/\S+\), rank 2 \(pid \d+\) the most, \d+ MiB: at the limit the kernel kills a process$`)
	var lines []string
	for in := bufio.NewScanner(stderr); in.Scan(); {
		if lines = append(lines, in.Text()); strings.HasPrefix(in.Text(), "goccl: warning: ") {
			_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		}
	}
	if err := c.Wait(); c.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) || killedIn(t, dir) > 0 {
		t.Errorf("%v, %d ranks were killed for memory: %q", err, killedIn(t, dir), lines)
	}
	isWarning := func(line string) bool { return strings.HasPrefix(line, "goccl: warning: ") }
	if i := slices.IndexFunc(lines, isWarning); i != 0 || !want.MatchString(lines[0]) || slices.ContainsFunc(lines[1:], isWarning) {
		t.Errorf("want one warning, %v: %q", want, lines)
	}
}
