package launcher

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

var blames = flag.Int("blames", 0, "how many jobs fail in each way; 0: one in every third way")

// culprit is a way in which rank 2 of 4 makes the others fail, between two calls.
type culprit struct {
	do    func() error
	cause Cause
	says  string // in the error of the job
}

const noLuck = "out of luck"

var culprits = map[string]culprit{
	"error": {func() error { return errors.New(noLuck) }, CauseFailed, noLuck},
	"panic": {func() error { return unlucky() }, CauseFailed, "\n  panic: " + noLuck + "\n    in launcher.unlucky at blame_linux_test.go:"},
	"panic in a goroutine": {func() error {
		go func() { _ = unlucky() }()
		select {}
	}, CauseFailed, "\n  panic: " + noLuck + "\n    in launcher.unlucky at blame_linux_test.go:"},
	"exit": {func() error {
		fmt.Fprintln(os.Stderr, noLuck)
		os.Exit(3)
		return nil
	}, CauseFailed, "exit status 3"},
	"log.Fatal": {func() error {
		log.Fatal(noLuck)
		return nil
	}, CauseFailed, noLuck},
	"SIGKILL": {func() error {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}, CauseFailed, "SIGKILL"},
	"fatal error": {func() error {
		new(sync.Mutex).Unlock()
		return nil
	}, CauseFailed, "\n  fatal error: sync: unlock of unlocked mutex\n    in launcher."},
	"return": {func() error { return errReturn }, CauseLeft, "left while others needed it"},
	"sleep":  {sleepy, CauseSilent, "\n  rank 2 was here (sleep):\n    in launcher.sleepy at blame_linux_test.go:"},
	"leave and sleep": {func() error {
		if err := dist.DestroyProcessGroup(); err != nil {
			return err
		}
		return sleepy()
	}, CauseLeft, "\n  rank 2 was here (sleep):\n    in launcher.sleepy at blame_linux_test.go:"},
	"SIGABRT": {func() error {
		go func() { _ = syscall.Kill(os.Getpid(), syscall.SIGABRT) }()
		return sleepy()
	}, CauseFailed, "\n  SIGABRT: abort\n"},
	"spin": {busy, CauseSilent, "\n    in launcher.busy at blame_linux_test.go:"},
	"await a goroutine": {func() error {
		over := make(chan error)
		go func() { over <- sleepy() }()
		return <-over
	}, CauseSilent, "\n    another goroutine (sleep): in launcher.sleepy at blame_linux_test.go:"},
	"deaf": {func() error {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT, syscall.SIGTERM)
		return sleepy()
	}, CauseSilent, "\n  rank 2: killed at the end of the grace period of "},
	"stop": {func() error {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	}, CauseSilent, "\n  rank 2 was stopped, by SIGSTOP, SIGTTIN (it read the terminal) or a debugger\n"},
}

func unlucky() error { panic(noLuck) }

func busy() error {
	for i := uint64(1); i != 0; i += 2 { // never
	}
	return nil
}

func sleepy() error {
	time.Sleep(time.Hour)
	return nil
}

var errReturn = errors.New("the worker returns nil")

// victims are reactions of the others to the error of a call.
var victims = map[string]func(error) error{
	"return it":   func(err error) error { return err },
	"hide it":     func(err error) error { return fmt.Errorf("step 7: %v", err) }, // as some do
	"exit by it":  func(err error) error { log.Fatal(err); return nil },
	"panic by it": func(err error) error { panic(err) },
}

// calls are the calls in which the others wait.
var calls = map[string]func(rank int, opts ...dist.CallOption) error{
	"barrier": func(_ int, opts ...dist.CallOption) error { return dist.Barrier(opts...) },
	"group": func(rank int, opts ...dist.CallOption) error {
		g, err := dist.NewGroup([]int{0, 2, 3}) // rank 2 of the job is rank 1 of the group
		if err != nil {
			return err
		}
		if rank == 1 {
			return dist.Barrier(opts...)
		}
		if rank == 2 {
			return nil
		}
		return dist.Barrier(append(opts, dist.WithGroup(g))...)
	},
	// Each rank except the first waits for a rank that waits itself.
	"ring": func(rank int, opts ...dist.CallOption) error {
		if rank == 2 {
			return nil
		}
		_, err := dist.SendRecv([]int{0}, (rank+3)%4, []int{rank}, (rank+1)%4, 0, opts...)
		return err
	},
}

func init() {
	ccl.Register(&ccl.Algorithm{Name: "circle", Doc: "every rank sends, and none receives", Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "A deadlock, for a test.",
			Cost: func(ccl.Shape) ccl.Cost { return ccl.Cost{} },
			Run:  func(c *ccl.Call) error { return c.Send((c.Rank()+1)%c.Size(), c.In()) },
		},
	}})
	programs["deadlock"] = func(args []string) {
		circle, err := config.Parse("circle.yaml", []byte("version: 1\nalgorithms: {circle: {module: circle}}\ndefaults: {algorithm: circle}\n"))
		if err != nil {
			log.Fatal(err)
		}
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(circle)); err != nil {
			log.Fatal(err)
		}
		rank, err := dist.GetRank()
		if err != nil {
			log.Fatal(err)
		}
		x, limit := make([]float32, 1<<20), dist.WithCallTimeout(300*time.Millisecond)
		switch args[0] {
		case "kernel":
			log.Fatal(dist.AllReduce(x, dist.Sum, limit))
		case "receives": // the first to give up has left when the others would
			_, err := dist.Recv(x, (rank+2)%3, 0, dist.WithCallTimeout(time.Duration(300+200*rank)*time.Millisecond))
			log.Fatal(err)
		case "works": // the first to fail is one that the rank does not wait for
			if _, err := dist.Isend(x, (rank+1)%3, 1, limit); err != nil {
				log.Fatal(err)
			}
			work, err := dist.Isend(x, (rank+1)%3, 0, limit)
			if err != nil {
				log.Fatal(err)
			}
			log.Fatal(work.Wait(context.Background()))
		}
		log.Fatal(dist.Send(x, (rank+1)%3, 0, limit))
	}
	programs["blame"] = func(args []string) {
		culprit, victim, call := culprits[args[0]], victims[args[1]], calls[args[2]]
		var opts []dist.CallOption
		if culprit.cause == CauseSilent {
			opts = append(opts, dist.WithCallTimeout(200*time.Millisecond))
		}
		worker := func(_ context.Context, rank int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			defer func() { _ = dist.DestroyProcessGroup() }() // also past an error
			if err := dist.Barrier(); err != nil {
				return victim(err)
			}
			if rank == 2 {
				if args[2] == "group" {
					_ = call(rank)
				}
				err := culprit.do()
				if errors.Is(err, errReturn) {
					return nil
				}
				return err
			}
			if err := call(rank, opts...); err != nil {
				return victim(err)
			}
			return nil
		}
		if err := dist.Spawn(worker); err != nil {
			log.Fatal(err)
		}
	}
}

// However a rank makes others fail, and whatever they do then, the error of the job names
// that rank and the reason, and never another rank.
func TestBlame(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(culprits)) {
		for j, victim := range slices.Sorted(maps.Keys(victims)) {
			for k, call := range slices.Sorted(maps.Keys(calls)) {
				if *blames > 0 || (i+j+k)%3 == 0 {
					t.Run(name+", others "+victim+", in "+call, func(t *testing.T) {
						for range max(*blames, 1) {
							testBlame(t, name, victim, call)
						}
					})
				}
			}
		}
	}
}

func testBlame(t *testing.T, name, victim, call string) {
	job := testJob(4, "blame", name, victim, call)
	if name == "deaf" {
		job.Grace = 50 * time.Millisecond // it ends by SIGKILL alone
	}
	r := start(job)
	e := r.failure(t)
	require.Equal(t, 2, e.First, "%v", e)
	require.Equal(t, culprits[name].cause, e.Cause, "%v", e)
	if name != "spin" || !strings.Contains(e.Error(), "\n  rank 2 was running (the Go runtime could not stop it in time to show where)") {
		require.Contains(t, e.Error(), culprits[name].says)
	}
	require.NotZero(t, e.ExitCode())
	if e.Cause == CauseSilent {
		require.NotEqual(t, 2, e.Seen)
		require.Equal(t, e.Ranks[e.Seen].status(), e.ExitCode(), "that of SIGQUIT is not the rank's own")
		require.NotContains(t, r.err.String(), "SIGQUIT", "the stacks are not shown")
	}
}

// Ranks that wait for each other in a circle are named in its order, whichever gives up first.
func TestDeadlockIsNamed(t *testing.T) {
	for how, circle := range map[string]string{
		"sends": "0 -> 1 -> 2 -> 0", "works": "0 -> 1 -> 2 -> 0", "kernel": "0 -> 1 -> 2 -> 0", "receives": "0 -> 2 -> 1 -> 0",
	} {
		t.Run(how, func(t *testing.T) {
			for range max(*blames, 3) {
				e := start(testJob(3, "deadlock", how)).failure(t)
				require.Equal(t, CauseDeadlock, e.Cause, "%v", e)
				require.Contains(t, e.Error(), "ranks "+circle+" waited for each other, a deadlock: the job failed after ")
			}
		})
	}
}

// hang starts a job whose rank 2 sleeps in its own code.
func hang() *Spec { return testJob(4, "blame", "sleep", "return it", "barrier") }

// A rank's files have all of its stacks, and the error has where it was.
func TestStacksInFiles(t *testing.T) {
	for name, set := range map[string]func(*Spec, string){
		"instead": func(j *Spec, dir string) { j.Files.Directory = dir },
		"beside":  func(j *Spec, dir string) { j.Files = Files{Directory: dir, Beside: true} },
	} {
		t.Run(name, func(t *testing.T) {
			job, dir := hang(), t.TempDir()
			set(job, dir)
			r := start(job)
			e := r.failure(t)
			require.Contains(t, e.Error(), "\n  rank 2 was here (sleep):\n    in launcher.sleepy at blame_linux_test.go:")
			require.NotContains(t, r.err.String(), "SIGQUIT")
			text, err := os.ReadFile(filepath.Join(dir, "rank-2.err"))
			require.NoError(t, err)
			require.Contains(t, string(text), "SIGQUIT: quit\n")
			require.Contains(t, string(text), "launcher.sleepy(")
		})
	}
}

// A shell around the program, which does not handle SIGQUIT, gets SIGTERM, and does not go on.
func TestStacksBehindShell(t *testing.T) {
	job := hang()
	job.Program, job.Args = "/bin/sh", append([]string{"sh", "-c", `"$0" "$@" || exit; echo went on`, self()}, job.Args[1:]...)
	r := start(job)
	e := r.failure(t)
	require.Contains(t, e.Error(), "\n  rank 2 was here (sleep):\n    in launcher.sleepy at blame_linux_test.go:")
	require.Contains(t, e.Error(), "\n  rank 2: ended after SIGQUIT, with SIGTERM (terminated)")
	require.NotContains(t, r.out.String(), "[2] went on")
	require.NotContains(t, r.err.String(), "SIGQUIT")
}

// Only programs that handle SIGQUIT are asked for their stacks, of which others would die.
func TestOnlyHandlersAreAsked(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		asked  bool
	}{
		"default": {`echo up; exec sleep 1000`, false},
		"ignores": {`trap "" QUIT; echo up; exec sleep 1000`, false},
		"handles": {`trap "echo asked; exit 7" QUIT; echo up; while :; do sleep 0.01; done`, true},
	} {
		t.Run(name, func(t *testing.T) {
			sh := exec.Command("/bin/sh", "-c", c.script)
			sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			out, err := sh.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, sh.Start())
			lines := bufio.NewReader(out)
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "up\n", line)
			require.False(t, isStopped(sh.Process.Pid))
			require.Equal(t, c.asked, askStacks(sh.Process.Pid))
			if c.asked {
				line, err = lines.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "asked\n", line)
				require.Error(t, sh.Wait())
				require.Equal(t, 7, sh.ProcessState.ExitCode())
				return
			}
			require.True(t, signalGroup(sh.Process.Pid, 0), "it lives")
			signalGroup(sh.Process.Pid, syscall.SIGKILL)
			require.Error(t, sh.Wait())
			status, ok := sh.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, ok)
			require.Equal(t, syscall.SIGKILL, status.Signal(), "nothing else ended it")
		})
	}
}

// No report remains, even if the launcher is killed.
func TestReportsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	left := func() []string {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		return files
	}
	start(testJob(2, "exit", "1", "3")).failure(t)
	require.Empty(t, left())
	r := start(testJob(2, "orderly"))
	r.out.Await(t, "up\n", 2)
	require.Len(t, left(), 1)
	r.signals <- syscall.SIGTERM
	r.failure(t)
	require.Empty(t, left())

	launcher := command("launcher", "2", "sleep")
	require.NoError(t, launcher.Start())
	require.Eventually(t, func() bool { return len(left()) == 1 }, 30*time.Second, 5*time.Millisecond)
	kill(t, launcher.Process.Pid)
	require.Error(t, launcher.Wait())
	require.Eventually(t, func() bool { return len(left()) == 0 }, 30*time.Second, 5*time.Millisecond)
}

// The keeper starts before there is anything to remove: the launcher may be
// killed at any moment.
func TestKeeperComesBeforeReports(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	l := &launcher{Spec: testJob(2, "echo"), attempt: newAttempt(&Restarts{}), ranks: make([]rank, 2)}
	require.NoError(t, l.joinNodes(t.Context()))
	require.NoError(t, l.prepare())
	require.NoError(t, l.null.Close())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

// If TMPDIR is not writable, reports are beside the shared memory, and the error of the job
// is the same.
func TestReportsWithoutTemporaryDirectory(t *testing.T) {
	reports := func() []string { // not the memory of other tests' jobs, whose names may be as long
		found, err := filepath.Glob("/dev/shm/goccl-????????????????")
		require.NoError(t, err)
		return slices.DeleteFunc(found, func(path string) bool { return !jobName.MatchString(filepath.Base(path)) })
	}
	before := reports()
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	testBlame(t, "panic", "return it", "barrier")
	require.Subset(t, before, reports())
}
