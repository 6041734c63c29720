//go:build unix

package launcher

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/test/screen"
)

func init() {
	// Rank 1 kills itself in so many starts.
	programs["unlucky"] = func(args []string) {
		fmt.Println(os.Getenv("GOCCL_RESTART"), os.Getenv("TORCHELASTIC_RESTART_COUNT"), os.Getenv("GOCCL_SHM_NAME"))
		if os.Getenv("RANK") == "1" && number(os.Getenv("GOCCL_RESTART")) < number(args[0]) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	// Rank 0 does not end before an interrupt; rank 1 fails once rank 0 takes signals: both wait at a gate.
	programs["slow to end"] = func(args []string) {
		if os.Getenv("RANK") == "1" {
			waitForFile(args[0])
			os.Exit(3)
		}
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
		if gate, err := os.Open(args[0]); err == nil {
			gate.Close()
		}
		for s := range asked {
			fmt.Println("got", s)
			if s == syscall.SIGINT {
				os.Exit(0)
			}
		}
	}
	programs["panic"] = func([]string) { panic("out of luck") }
	// Stays until a file exists.
	programs["until"] = func(args []string) {
		for _, err := os.Stat(args[0]); err != nil; _, err = os.Stat(args[0]) {
			fmt.Println("up")
			time.Sleep(10 * time.Millisecond)
		}
	}
	// A launcher of a node that restarts: as the program node.
	programs["restarting node"] = func(args []string) {
		job := testJob(number(args[3]), args[4:]...)
		job.Nodes = testNodes(number(args[0]), number(args[1]), args[2])
		job.Stdout, job.Stderr, job.Grace = os.Stdout, os.Stderr, time.Minute
		if _, _, err := (&Restarts{Max: 3}).Run(context.Background(), job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(9)
		}
	}
}

// A job that fails starts anew, with all ranks: each start has a name and a number of its own, and
// files of its own.
func TestRestart(t *testing.T) {
	var noticed []int
	limits := Restarts{Max: 2, Notice: func(failed Attempt, restart int, pause time.Duration) {
		require.ErrorContains(t, failed.Err, "was the first to fail")
		require.GreaterOrEqual(t, pause, firstRestartPause/4*time.Duration(2*restart)/2)
		require.Less(t, pause, firstRestartPause*time.Duration(restart))
		noticed = append(noticed, restart)
	}}
	job := testJob(2, "unlucky", "2")
	out := screen.New()
	job.Stdout, job.Files = out, Files{Directory: filepath.Join(t.TempDir(), "tee"), Beside: true}
	outcome, earlier, err := limits.Run(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, noticed)
	require.Len(t, earlier, 2)
	base := earlier[0].Outcome.Job
	require.Equal(t, base+".1", earlier[1].Outcome.Job)
	require.Equal(t, base+".2", outcome.Job)
	require.Regexp(t, jobName, outcome.Job)
	require.Equal(t, syscall.SIGKILL, earlier[0].Outcome.Ranks[1].Signal)
	require.ErrorContains(t, earlier[1].Err, " of restart 1: SIGKILL (killed)")
	require.Zero(t, outcome.Ranks[1].Signal)

	lines := slices.DeleteFunc(sortedLines(out), func(line string) bool { return !strings.HasPrefix(line, "[1]") })
	require.Equal(t, []string{
		"[1] 0 0 /" + base + "\n", "[1] 1 1 /" + base + ".1\n", "[1] 2 2 /" + base + ".2\n",
	}, lines)
	last, err := os.ReadFile(filepath.Join(job.Files.Directory, "restart-2", "rank-1.out"))
	require.NoError(t, err)
	require.Equal(t, "2 2 /"+base+".2\n", string(last))
	for _, dir := range reportDirectories(base + "*") {
		left, err := filepath.Glob(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// After as many restarts as there may be, the error is that of the last start.
func TestNoMoreRestarts(t *testing.T) {
	outcome, earlier, err := (&Restarts{Max: 1}).Run(t.Context(), testJob(2, "unlucky", "9"))
	var ended *EndedError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, 1, ended.Restart)
	require.Regexp(t, `^rank 1 \(pid \d+\) was the first to fail, after \S+ of restart 1: SIGKILL \(killed\)`, err.Error())
	require.Equal(t, 128+int(syscall.SIGKILL), ended.ExitCode())
	require.Len(t, earlier, 1)
	require.Equal(t, earlier[0].Outcome.Job+".1", outcome.Job)
}

// What would only repeat is not restarted; a crash is, though its status is that of a wrong command
// line.
func TestWhatIsRestarted(t *testing.T) {
	for _, c := range []struct {
		args     []string
		restarts int
	}{
		{[]string{"exit", "1", "1"}, 1},
		{[]string{"exit", "1", "2"}, 0},
		{[]string{"exit", "1", "126"}, 0},
		{[]string{"exit", "1", "127"}, 0},
		{[]string{"panic"}, 1},
	} {
		_, earlier, err := (&Restarts{Max: 1}).Run(t.Context(), testJob(2, c.args...))
		require.Error(t, err)
		require.Len(t, earlier, c.restarts, "%q", c.args)
	}
	job := testJob(2, "echo")
	job.Program = "/no/such/program"
	_, earlier, err := (&Restarts{Max: 1}).Run(t.Context(), job)
	require.Error(t, err)
	require.Empty(t, earlier)
}

// Failures are counted anew after a start that has lasted long enough, and pauses are short again.
func TestRestartWindow(t *testing.T) {
	a := newAttempt(&Restarts{Max: 2, Window: time.Minute})
	failed := &EndedError{Ranks: []Rank{{Exit: 1}}}
	for range 2 {
		require.True(t, a.isFollowed(failed, time.Second))
		a.renew(time.Second)
	}
	require.False(t, a.isFollowed(failed, time.Second))
	require.True(t, a.isFollowed(failed, time.Minute))
	a.renew(time.Minute)
	require.Equal(t, []int{3, 1}, []int{a.restart, a.failures})
	a.failures = 1000
	require.LessOrEqual(t, a.pause(), longestRestartPause)
	require.GreaterOrEqual(t, a.pause(), longestRestartPause/2)

	a = newAttempt(&Restarts{Max: 1})
	a.renew(time.Hour)
	require.False(t, a.isFollowed(failed, time.Hour), "without a window")
}

// A signal and the end of the context end a job between two starts, but for signals that mean what
// the program makes of them.
func TestEndBeforeRestart(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	signals := make(chan os.Signal, 2)
	reason := errors.New("a reason")
	for _, c := range []struct {
		end    func()
		text   string
		status int
	}{
		{func() { signals <- syscall.SIGUSR1; signals <- syscall.SIGTERM }, "SIGTERM came after ", 128 + int(syscall.SIGTERM)},
		{func() { cancel(reason) }, "the job was ended after ", statusFailed},
	} {
		job := testJob(2, "unlucky", "9")
		job.Signals = signals
		starts := 0
		limits := Restarts{Max: 9, Notice: func(Attempt, int, time.Duration) {
			starts++
			c.end()
		}}
		outcome, earlier, err := limits.Run(ctx, job)
		require.Equal(t, 1, starts)
		require.Len(t, earlier, 1)
		require.ErrorContains(t, earlier[0].Err, "rank 1 (pid ")
		require.Len(t, outcome.Ranks, 2)
		var ended *EndedError
		require.ErrorAs(t, err, &ended)
		require.ErrorContains(t, err, "before restart 1: "+c.text)
		require.Equal(t, c.status, ended.ExitCode())
		require.Equal(t, ctx.Err() != nil, errors.Is(err, reason) && errors.Is(err, context.Canceled))
	}
}

// A signal to the launcher of any node between two starts ends the job on all.
func TestSignalBeforeRestartOfNodes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for node := range 2 {
		jobs := nodeJobs(t, []int{1, 1}, "unlucky", "9")
		errs := make([]error, 2)
		var running sync.WaitGroup
		for i, job := range jobs {
			running.Go(func() {
				signals := make(chan os.Signal, 1)
				job.Signals = signals
				limits := Restarts{Max: 9, Notice: func(Attempt, int, time.Duration) {
					if i == node {
						signals <- syscall.SIGTERM
					}
				}}
				_, _, errs[i] = limits.Run(ctx, job)
			})
		}
		running.Wait()
		for i, err := range errs {
			require.Equal(t, 128+int(syscall.SIGTERM), exitStatus(err), "node %d: %v", i, err)
		}
		require.ErrorContains(t, errs[node], "before restart 1: SIGTERM came after ")
		require.Equal(t, node == 0, strings.Contains(errs[node].Error(), "rank 0: ended "))
		require.Regexp(t, fmt.Sprintf(`^restart 1: node %d, host \S+: SIGTERM came after `, node), errs[1-node].Error())
	}
}

// A signal that comes while a job that has failed ends is no wish for a restart.
func TestInterruptedWhileItEnds(t *testing.T) {
	fifo, _ := gate(t)
	job := testJob(2, "slow to end", fifo)
	signals, ended := make(chan os.Signal), make(chan error)
	out := screen.New()
	job.Stdout, job.Signals = out, signals
	go func() {
		_, _, err := (&Restarts{Max: 9}).Run(t.Context(), job)
		ended <- err
	}()
	out.Await(t, "got terminated", 1)
	signals <- syscall.SIGINT
	var failed *EndedError
	require.ErrorAs(t, <-ended, &failed)
	require.Equal(t, 3, failed.ExitCode())
	require.Zero(t, failed.Restart)
}

// On several nodes the first decides, and all launchers start anew.
func TestRestartOfNodes(t *testing.T) {
	jobs := nodeJobs(t, []int{1, 2}, "unlucky", "1")
	outcomes, earlier, errs := make([]*Outcome, 2), make([][]Attempt, 2), make([]error, 2)
	ended := make(chan int)
	for i, limits := range []*Restarts{{Max: 1}, {}} { // on other nodes it is not needed
		go func() {
			outcomes[i], earlier[i], errs[i] = limits.Run(t.Context(), jobs[i])
			ended <- i
		}()
	}
	<-ended
	<-ended
	require.NoError(t, errors.Join(errs...))
	for i := range jobs {
		require.Len(t, earlier[i], 1)
		require.Equal(t, outcomes[0].Job, outcomes[i].Job)
		require.Equal(t, 1, outcomes[i].Restart)
		require.Equal(t, earlier[0][0].Outcome.Job+".1", outcomes[i].Job)
	}
}

// A node whose launcher dies, and is started again, joins the others for the next start.
func TestRestartOfLostNode(t *testing.T) {
	for lost := range 2 {
		endpoint, file := freeEndpoint(t), filepath.Join(t.TempDir(), "end")
		launch := func(node int) (*exec.Cmd, *screen.Screen) {
			c, out := command("restarting node", fmt.Sprint(node), "2", endpoint, "1", "until", file), screen.New()
			c.Stdout, c.Stderr = out, out
			require.NoError(t, c.Start())
			return c, out
		}
		var launchers []*exec.Cmd
		var outs []*screen.Screen
		for node := range 2 {
			c, out := launch(node)
			launchers, outs = append(launchers, c), append(outs, out)
		}
		for _, out := range outs {
			out.Await(t, "up", 1)
		}
		kill(t, launchers[lost].Process.Pid)
		_ = launchers[lost].Wait()
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		launchers[lost], outs[lost] = launch(lost)
		for node, c := range launchers {
			require.NoError(t, c.Wait(), "the launcher of %s says: %v", text.Ranks([]int{node}), outs[node])
		}
	}
}
