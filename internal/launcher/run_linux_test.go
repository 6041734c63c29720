package launcher

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/cores"
)

func init() {
	programs["cores"] = func([]string) {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			panic(err)
		}
		for line := range strings.Lines(string(status)) {
			if cores, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				fmt.Printf("runs on %s, GOMAXPROCS %q\n", strings.TrimSpace(cores), os.Getenv("GOMAXPROCS"))
			}
		}
	}
	programs["score"] = func([]string) { fmt.Println("score", outOfMemory()) }
	// Prints its process group, and has a child in it.
	programs["family"] = func([]string) {
		fmt.Println("group", os.Getpid())
		child := command("child")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		_ = child.Wait()
	}
	programs["child"] = func([]string) {
		fmt.Println("child up")
		time.Sleep(time.Hour)
	}
	// Has a child in a group of its own that is dead, and does not wait for it.
	programs["negligent"] = func([]string) {
		child := command("echo")
		child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Println("child", child.Process.Pid)
		time.Sleep(time.Hour)
	}
	// Ranks 0 and 1 see the job's shared memory, which exists until all have joined.
	programs["joining"] = func([]string) {
		if os.Getenv("RANK") == "0" {
			go func() { panic(dist.InitProcessGroup("ccl")) }()
		}
		file := fileOf(os.Getenv("GOCCL_SHM_NAME"))
		if os.Getenv("RANK") == "0" {
			fmt.Println("pid", os.Getpid())
		} else if os.Getenv("RANK") == "1" {
			fmt.Println("sees", file)
		}
		time.Sleep(time.Hour)
	}
}

// fileOf waits for the shared memory of the job of that name.
func fileOf(job string) string {
	for ; ; time.Sleep(time.Millisecond) {
		if files, _ := filepath.Glob("/dev/shm/goccl-*-" + job[1:] + "-*"); len(files) == 1 {
			return files[0]
		}
	}
}

// pinned returns a job whose ranks print their cores.
func pinned(ranks int, pin Pinning) *Spec {
	job := testJob(ranks, "cores")
	job.Pin = pin
	return job
}

// severalCores returns the cores that this process may use, if ranks can have one each.
func severalCores(t *testing.T) []cores.Core {
	t.Helper()
	m, err := cores.Survey()
	require.NoError(t, err)
	if m.Ranks() < 2 {
		t.Skip("ranks cannot have a core each")
	}
	return m.Free
}

// everywhere checks that no rank is pinned.
func everywhere(t *testing.T, job *Spec) {
	t.Helper()
	usable, err := cores.Usable()
	require.NoError(t, err)
	out, errs := run(t, job)
	require.Equal(t, job.Ranks, strings.Count(out.String(), fmt.Sprintf("runs on %s, GOMAXPROCS %q\n", cores.Format(usable), os.Getenv("GOMAXPROCS"))), out)
	require.Empty(t, errs.String())
}

// Every rank runs on its own cores by default, and the launcher on all as before.
func TestPin(t *testing.T) {
	all := severalCores(t)
	usable, err := cores.Usable()
	require.NoError(t, err)
	for _, pin := range []Pinning{PinDefault, PinOn} {
		out, _ := run(t, pinned(len(all), pin))
		for i, c := range all {
			share := cores.Format(c.CPUs)
			require.Contains(t, out.String(), fmt.Sprintf("[%d] runs on %s, GOMAXPROCS ", i, share))
			if len(c.CPUs) == 1 && os.Getenv("GOMAXPROCS") == "" {
				require.Contains(t, out.String(), fmt.Sprintf("[%d] runs on %s, GOMAXPROCS \"2\"\n", i, share))
			}
		}
	}
	after, err := cores.Usable()
	require.NoError(t, err)
	require.Equal(t, usable, after)
	everywhere(t, pinned(len(all), PinOff))
	everywhere(t, pinned(1, PinDefault))
	everywhere(t, pinned(1, PinOn)) // it has all cores
}

// Too few cores are an error only if the user asks for pinning.
func TestTooFewCores(t *testing.T) {
	usable, err := cores.Usable()
	require.NoError(t, err)
	everywhere(t, pinned(len(usable)+1, PinDefault))
	var refused *RefusedError
	require.ErrorAs(t, runError(pinned(len(usable)+1, PinOn)), &refused)
	require.Equal(t, 2, refused.ExitCode())
	require.ErrorContains(t, refused, fmt.Sprintf("%d ranks cannot have a core each: ", len(usable)+1))
	require.ErrorContains(t, refused, ": start fewer ranks, or let them share cores")
}

// Of two jobs at once the first has the cores. They are free when it ends, however it ends.
func TestTwoPinnedJobs(t *testing.T) {
	all := severalCores(t)
	for name, ends := range map[string]os.Signal{"killed": unix.SIGKILL, "ended": unix.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			value := fmt.Sprintf("%d.%s", os.Getpid(), name)
			first := command("launcher", "2", "stay")
			first.Env = append(first.Env, mark+"="+value)
			out, err := first.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, first.Start())
			_, err = bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)

			everywhere(t, pinned(2, PinDefault))
			require.ErrorContains(t, runError(pinned(2, PinOn)), fmt.Sprintf("and other jobs of goccl run hold %d of them", len(all)))

			require.NoError(t, first.Process.Signal(ends))
			require.Error(t, first.Wait())
			shown, _ := run(t, pinned(len(all), PinOn))
			require.Contains(t, shown.String(), fmt.Sprintf("[0] runs on %s, ", cores.Format(all[0].CPUs)))
			gone(t, value)
		})
	}
}

// While a job without cores of its own runs beside it, the ranks of a job run on all cores, also
// those that have started other programs.
func TestGuests(t *testing.T) {
	all := severalCores(t)
	usable, err := cores.Usable()
	require.NoError(t, err)
	runOn := func(job *running, share func(rank int) []int) {
		t.Helper()
		require.Eventually(t, func() bool {
			for i := range job.Ranks {
				var group int
				_, after, found := strings.Cut(job.out.String(), fmt.Sprintf("[%d] group ", i))
				require.True(t, found)
				_, err := fmt.Sscan(after, &group)
				require.NoError(t, err)
				if !slices.Equal(share(i), allowed(t, group)) {
					return false
				}
			}
			return true
		}, 30*time.Second, 5*time.Millisecond)
	}
	own := func(i int) []int { return all[i].CPUs }
	everywhere := func(int) []int { return usable }

	startHost := func() *running {
		host := start(testJob(len(all), "family"))
		host.out.Await(t, "child up", len(all))
		return host
	}
	startGuest := func(ranks int) (leave func()) {
		guest := command("launcher", fmt.Sprint(ranks), "stay")
		out, err := guest.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, guest.Start())
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		return func() {
			require.NoError(t, guest.Process.Kill())
			require.Error(t, guest.Wait())
		}
	}

	host := startHost()
	runOn(host, own)
	leave := startGuest(len(all)) // no cores are left
	runOn(host, everywhere)
	leave()
	runOn(host, own)
	leave = startGuest(len(usable) + 1)
	runOn(host, everywhere)

	// A job that starts beside one that is not pinned becomes its host.
	host.signals <- unix.SIGTERM
	host.failure(t)
	host = startHost()
	runOn(host, everywhere)
	leave()
	runOn(host, own)
	host.signals <- unix.SIGTERM
	host.failure(t)
}

// allowed returns the hyperthreads that every thread of a process group may use, or nil if they
// differ.
func allowed(t *testing.T, group int) (cpus []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/task/*/status")
	require.NoError(t, err)
	for _, file := range files {
		var pid int
		_, err := fmt.Sscanf(file, "/proc/%d/", &pid)
		require.NoError(t, err)
		if of, err := unix.Getpgid(pid); err != nil || of != group {
			continue
		}
		status, _ := os.ReadFile(file)
		_, after, found := strings.Cut(string(status), "Cpus_allowed_list:")
		if !found {
			continue // it has ended
		}
		line, _, _ := strings.Cut(after, "\n")
		own := cores.Parse(strings.TrimSpace(line))
		if cpus != nil && !slices.Equal(cpus, own) {
			return nil
		}
		cpus = own
	}
	return cpus
}

// A job gets the cores that a job on the others leaves.
func TestPinTheRest(t *testing.T) {
	all := severalCores(t)
	started, release := make(chan struct{}), make(chan struct{})
	go func() { // on a thread of its own, which ends with its affinity
		runtime.LockOSThread()
		defer close(started)
		if err := cores.Use(all[0].CPUs); err != nil {
			panic(err)
		}
		r, err := cores.Reserve(1, true)
		if err != nil {
			panic(err)
		}
		go func() {
			<-release
			r.Release()
		}()
	}()
	<-started
	defer close(release)
	out, _ := run(t, pinned(1, PinOn))
	require.Contains(t, out.String(), fmt.Sprintf("[0] runs on %s, ", cores.Format(cores.CPUs(all[1:]))))
}

// mark is a variable by which all descendants of a launcher are found.
const mark = "TEST_GOCCL_MARK"

// marked returns the processes that have the mark, and still have an environment.
func marked(t *testing.T, value string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range files {
		if environment, err := os.ReadFile(file); err == nil && bytes.Contains(environment, []byte(mark+"="+value+"\x00")) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// gone waits until no process has the mark. It kills those that remain.
func gone(t *testing.T, value string) {
	t.Helper()
	defer func() {
		for _, pid := range marked(t, value) {
			_ = unix.Kill(number(pid), unix.SIGKILL)
		}
	}()
	require.Eventually(t, func() bool { return len(marked(t, value)) == 0 }, 30*time.Second, 5*time.Millisecond)
}

// Whenever a launcher is killed, its ranks and their descendants are killed, and the
// keeper ends. No directory of reports remains.
func TestKilledLauncher(t *testing.T) {
	const moments = 25
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for i := range moments {
		value := fmt.Sprintf("%d.%d", os.Getpid(), i)
		launcher := command("launcher", "2", "parent", "waits", "stubborn")
		launcher.Env = append(launcher.Env, mark+"="+value)
		out, err := launcher.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, launcher.Start())
		if i == 0 { // all are there
			lines := bufio.NewReader(out)
			for range 2 {
				_, err := lines.ReadString('\n')
				require.NoError(t, err)
			}
			require.Len(t, marked(t, value), 1+1+2+2)
		} else { // some are there
			<-time.After(time.Duration(i) * 2 * time.Millisecond)
		}
		kill(t, launcher.Process.Pid)
		require.Error(t, launcher.Wait())
		gone(t, value)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files)
	}
}

// If launcher and keeper are killed together, the ranks die nevertheless. The directory of reports
// stays, and is a leftover.
func TestKilledLauncherAndKeeper(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	value := fmt.Sprintf("%d.both", os.Getpid())
	launcher := command("launcher", "2", "stubborn")
	launcher.Env = append(launcher.Env, mark+"="+value)
	out, err := launcher.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, launcher.Start())
	lines := bufio.NewReader(out)
	for range 2 {
		_, err := lines.ReadString('\n')
		require.NoError(t, err)
	}
	require.Empty(t, Leftovers(), "the job runs")
	kill(t, keeperOf(t, launcher.Process.Pid))
	kill(t, launcher.Process.Pid)
	require.Error(t, launcher.Wait())
	gone(t, value)

	require.NoError(t, os.Mkdir(filepath.Join(dir, "goccl-experiments-2026"), 0o700)) // as long as a job's name
	found, err := filepath.Glob(filepath.Join(dir, "goccl-[0-9a-f]*[0-9a-f]"))
	require.NoError(t, err)
	for _, path := range found {
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now()))
	}
	require.Empty(t, Leftovers(), "it may be that of a job that has not locked it yet")

	for _, path := range found {
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-lockTime)))
	}
	require.Len(t, Leftovers(), 1)
	require.Subset(t, found, Leftovers())
	t.Setenv("TMPDIR", "/dev/shm/")
	require.Len(t, reportDirectories("a job's"), 1, "a leftover would be listed twice")
}

// The keeper is not part of the job: the job continues without it.
func TestKilledKeeper(t *testing.T) {
	launcher := command("launcher", "1", "orderly")
	out, err := launcher.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, launcher.Start())
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	kill(t, keeperOf(t, launcher.Process.Pid))
	require.NoError(t, launcher.Process.Signal(unix.SIGINT))
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "[0] got interrupt\n", line)
	require.Error(t, launcher.Wait())
	require.Equal(t, 130, launcher.ProcessState.ExitCode())
}

// A job that ends while some ranks have not joined yet leaves nothing in
// /dev/shm, whatever ends it.
func TestLeftovers(t *testing.T) {
	for name, kills := range map[string]func(launcher *os.Process, zero int){
		"rank 0 killed":     func(_ *os.Process, zero int) { kill(t, zero) },
		"launcher signaled": func(launcher *os.Process, _ int) { require.NoError(t, launcher.Signal(unix.SIGTERM)) },
		"launcher killed":   func(launcher *os.Process, _ int) { kill(t, launcher.Pid) },
	} {
		t.Run(name, func(t *testing.T) {
			launcher := command("launcher", "3", "joining")
			out, err := launcher.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, launcher.Start())
			lines := bufio.NewReader(out)
			var zero int
			var file string
			for zero == 0 || file == "" { // in any order
				line, err := lines.ReadString('\n')
				require.NoError(t, err)
				_, _ = fmt.Sscanf(line, "[0] pid %d", &zero)
				_, _ = fmt.Sscanf(line, "[1] sees %s", &file)
			}
			require.FileExists(t, file)
			kills(launcher.Process, zero)
			require.Error(t, launcher.Wait())
			if name == "launcher killed" {
				require.Eventually(t, func() bool { _, err := os.Stat(file); return os.IsNotExist(err) }, 30*time.Second, 5*time.Millisecond)
			}
			require.NoFileExists(t, file)
		})
	}
}

// keeperOf finds the keeper of a launcher by its name.
func keeperOf(t *testing.T, launcher int) (pid int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	require.NoError(t, err)
	for _, file := range files {
		command, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || !strings.HasPrefix(string(command), keeperName+"\x00") {
			continue
		}
		status, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", launcher)) {
			_, err = fmt.Sscanf(filepath.Base(filepath.Dir(file)), "%d", &pid)
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatal("no keeper")
	return 0
}

// A launcher waits for orphans, which would otherwise stay in their groups, and does not
// confuse them with its ranks.
func TestOrphans(t *testing.T) {
	launcher := command("launcher", "3", "parent", "does not", "stay")
	text, err := launcher.CombinedOutput()
	require.NoError(t, err, "%s", text) // and not after the grace period of a minute
	launcher = command("launcher", "3", "daemon", "exit", "0", "5")
	text, err = launcher.CombinedOutput() // one of the daemons ends with status 5
	require.NoError(t, err, "%s", text)
	require.Equal(t, 3, strings.Count(string(text), "daemon "))
}

// A group counts as empty when all of its processes are dead, although their parent does not wait
// for them.
func TestDeadGroup(t *testing.T) {
	parent := command("negligent")
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	defer func() {
		require.NoError(t, parent.Process.Kill())
		require.Error(t, parent.Wait())
	}()
	var child rank
	_, err = fmt.Fscanf(out, "child %d\n", &child.PID)
	require.NoError(t, err)
	require.True(t, child.awaitEmptyGroup(time.Minute))
	require.True(t, signalGroup(child.PID, 0), "it is still there")

	group, err := syscall.Getpgid(0)
	require.NoError(t, err)
	require.False(t, isDead(group))
	require.False(t, isDead(1<<30), "it has never been there")
}

// outOfMemory returns what the kernel adds to the memory of this process when it looks for one to end.
func outOfMemory() int {
	text, err := os.ReadFile(outOfMemoryScore)
	if err != nil {
		panic(err)
	}
	return number(strings.TrimSpace(string(text)))
}

// Where memory runs out the kernel ends a rank, and not the launcher, which says so.
func TestRanksYieldMemory(t *testing.T) {
	out, _ := run(t, testJob(3, "score"))
	require.Equal(t, 3, strings.Count(out.String(), fmt.Sprintln("score", min(outOfMemory()+100, 1000))), out)
}
