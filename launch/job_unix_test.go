//go:build unix

package launch_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/launch"
	"github.com/goccl/goccl/test/screen"
)

// The lines of ranks come behind their ranks, and ranks have the environment of the job.
func TestOutput(t *testing.T) {
	job, _ := testJob(t, 2, "echo", "a b", "c")
	job.Env = append(job.Env, "ORDINARY=old", "ORDINARY=variable", "MASTER_ADDR=elsewhere")
	out, errs := screen.New(), screen.New()
	job.Stdout, job.Stderr = out, errs
	ranks, err := job.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []string{"[0] a b c variable\n", "[1] a b c variable\n"}, slices.Sorted(strings.Lines(out.String())))
	require.Equal(t, []string{"[0] a word\n", "[1] a word\n"}, slices.Sorted(strings.Lines(errs.String())))
	for _, r := range ranks {
		require.Zero(t, r.ExitStatus)
		require.NoError(t, r.Err)
		require.Empty(t, r.Transport, "it never joined")
		require.Nil(t, r.Value)
	}
}

// Warnings come to the program.
func TestWarn(t *testing.T) {
	var warned []string
	job := launch.Job{Ranks: 1, Program: "/bin/sh", Args: []string{"-c", "sleep 100 & exit 0"}, Warn: func(rank int, text string) {
		warned = append(warned, fmt.Sprint(rank, " ", text))
	}}
	_, err := job.Run(context.Background())
	require.NoError(t, err)
	require.Len(t, warned, 1)
	require.Regexp(t, `^-1 rank 0: exit status 0`, warned[0])
}

// Ranks return values.
func TestReturn(t *testing.T) {
	job, _ := testJob(t, 3, "return")
	ranks, err := job.Run(context.Background())
	require.NoError(t, err)
	for i, r := range ranks {
		require.JSONEq(t, fmt.Sprintf(`{"rank": "%d"}`, i), string(r.Value))
	}
	require.ErrorContains(t, launch.Return(func() {}), "launch: the value of this rank: ")
	require.NoError(t, launch.Return(1), "nobody asks for it")
}

// A value may have infinities and NaN, at any depth: what a training that diverges returns is no
// reason to fail.
func TestReturnOfNonFinite(t *testing.T) {
	job, _ := testJob(t, 1, "diverge")
	ranks, err := job.Run(context.Background())
	require.NoError(t, err)
	require.JSONEq(t, `{"Loss": "NaN", "Best": ["Infinity", "-Infinity", 1.5]}`, string(ranks[0].Value))
	job, _ = testJob(t, 1, "nan")
	ranks, err = job.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, `"NaN"`, string(ranks[0].Value))
}

// Any program can have ranks.
func TestProgram(t *testing.T) {
	out := screen.New()
	job := launch.Job{Ranks: 2, Program: "env", Args: []string{"/bin/sh", "-c", "echo $0 $RANK of $WORLD_SIZE", "x"}, Stdout: out, Stderr: out}
	_, err := job.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []string{"[0] x 0 of 2\n", "[1] x 1 of 2\n"}, slices.Sorted(strings.Lines(out.String())))

	job.Program = "no-such-program"
	ranks, err := job.Run(context.Background())
	require.EqualError(t, err, "launch: no-such-program: there is no such program")
	require.Nil(t, ranks)
}

// A rank that exits is named, with its status and what it wrote; the other is ended.
func TestExit(t *testing.T) {
	job, _ := testJob(t, 2, "exit")
	failed := failure(t, context.Background(), job)
	require.Equal(t, 1, failed.Rank)
	require.Regexp(t, `^launch: rank 1 \(pid \d+\) was the first to fail, after \S+: exit status 3
  the last that it wrote to standard error:
    out of luck
  rank 0: ended by SIGTERM$`, failed.Error())
	require.Equal(t, 3, failed.Ranks[1].ExitStatus)
	require.EqualError(t, failed.Ranks[1].Err, "exit status 3: out of luck")
	require.Equal(t, syscall.SIGTERM, failed.Ranks[0].Signal)
	require.EqualError(t, failed.Ranks[0].Err, "SIGTERM (terminated)")
	require.NoError(t, failed.Unwrap())
}

// The end of the context ends the job: first in order, and after the grace period by force.
func TestContext(t *testing.T) {
	reason := errors.New("enough")
	for program, want := range map[string]os.Signal{"stay": syscall.SIGTERM, "stubborn": syscall.SIGKILL} {
		t.Run(program, func(t *testing.T) {
			job, _ := testJob(t, 2, program)
			if program == "stubborn" {
				job.Grace = time.Millisecond
			}
			out := screen.New()
			job.Stdout = out
			ctx, cancel := context.WithCancelCause(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				out.Await(t, "up\n", 2)
				cancel(reason)
			}()
			failed := failure(t, ctx, job)
			<-done
			require.Equal(t, -1, failed.Rank)
			require.ErrorIs(t, failed, context.Canceled)
			require.ErrorIs(t, failed, reason)
			require.Regexp(t, `^launch: the job was ended after \S+: context canceled: enough\n`, failed.Error())
			for _, r := range failed.Ranks {
				require.Equal(t, want, r.Signal)
			}
		})
	}
}

// A deadline is the context's.
func TestDeadline(t *testing.T) {
	job, _ := testJob(t, 2, "stay")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, failure(t, ctx, job), context.DeadlineExceeded)

	ranks, err := job.Run(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "launch: nothing was started: ")
	require.Nil(t, ranks)
}

// A program that does not ask whether it is a rank does not start ranks without end.
func TestForgetfulProgram(t *testing.T) {
	out, err := self("forgetful").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Regexp(t, `^launch: (all ranks failed alike: the job failed after \S+|rank [01] \(pid \d+\) was the first to fail, after \S+: exit status 1)
  the last that (it|rank 0) wrote to standard error:
    launch: this process is a rank itself: this process is rank [01] of 2 by the variables of goccl run \(.*\); ask launch\.IsRank before Run`, string(out))
}

// In a rank of any launcher Run starts nothing.
func TestInRank(t *testing.T) {
	t.Setenv("GOCCL_SHM_NAME", "/x")
	t.Setenv("GOCCL_SHM_RANK", "0")
	require.False(t, launch.IsRank())
	job, _ := testJob(t, 1, "echo")
	_, err := job.Run(context.Background())
	require.ErrorContains(t, err, "launch: GOCCL_SHM_SIZE is not set")
	t.Setenv("GOCCL_SHM_SIZE", "2")
	require.True(t, launch.IsRank())
	_, err = job.Run(context.Background())
	require.ErrorIs(t, err, launch.ErrIsRank)
}

// While packages are initialized Run starts nothing, on whichever goroutine.
func TestInInit(t *testing.T) {
	for _, where := range []string{"variable", "init", "goroutine"} {
		c := self("none")
		c.Env = append(c.Env, inInit+"="+where)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "launch: called before main, from an init function or for a package variable, which every rank would do again: call Run from main\ntrue\n", string(out))
	}
}

// inInit is a variable that makes a process call Run before main.
const inInit = "TEST_GOCCL_LAUNCH_IN_INIT"

var _ = runEarly("variable")

func init() {
	runEarly("init")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runEarly("goroutine")
	}()
	<-ended
}

func runEarly(where string) bool {
	if os.Getenv(inInit) != where {
		return false
	}
	job := launch.Job{Ranks: 2, Program: "/bin/sh", Args: []string{"-c", "echo started"}, Stdout: os.Stdout}
	_, err := job.Run(context.Background())
	fmt.Println(err)
	fmt.Println(errors.Is(err, launch.ErrInit))
	os.Exit(0)
	return true
}

// A function without a name that a variable of a package holds may call Run when main has begun.
func TestAfterInit(t *testing.T) { runLate(t) }

var runLate = func(t *testing.T) {
	job, _ := testJob(t, 1, "echo")
	_, err := job.Run(context.Background())
	require.NoError(t, err)
}

// In a test binary Run needs arguments: those of go test would make every rank run all tests.
func TestInTest(t *testing.T) {
	job, _ := testJob(t, 2)
	job.Args = nil
	_, err := job.Run(context.Background())
	require.ErrorContains(t, err, "launch: this program is a test binary, and each rank would run all tests: let TestMain ")
}

// Ranks can be runs of one test.
func TestOfOneRank(t *testing.T) {
	if launch.IsRank() {
		require.NoError(t, launch.Return("the work of a rank"))
		return
	}
	job := launch.Job{Ranks: 2, Args: []string{"-test.run=^TestOfOneRank$"}}
	ranks, err := job.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, `"the work of a rank"`, string(ranks[1].Value))
}

// What the job says of itself is checked before anything is started.
func TestMistakes(t *testing.T) {
	for want, change := range map[string]func(*launch.Job){
		"launch: Job.Ranks is 0: at least 1 rank is needed":                    func(j *launch.Job) { j.Ranks = 0 },
		"launch: Job.Ranks is 65537: at most 65536 ranks are possible":         func(j *launch.Job) { j.Ranks = 1<<16 + 1 },
		"launch: Job.Ranks is -9223372036854775808: at least 1 rank is needed": func(j *launch.Job) { j.Ranks = math.MinInt },
		"launch: Job.Ranks is 1099511627776: at most 65536 ranks are possible": func(j *launch.Job) { j.Ranks = 1 << 40 },
		"launch: Job.Pin is 7: want PinAuto, PinOn or PinOff":                  func(j *launch.Job) { j.Pin = 7 },
		"launch: Job.Grace is -1s: want 0 or more":                             func(j *launch.Job) { j.Grace = -time.Second },
		"launch: / cannot be executed: ":                                       func(j *launch.Job) { j.Program = "/" },
	} {
		job, _ := testJob(t, 2, "echo")
		change(job)
		ranks, err := job.Run(context.Background())
		require.ErrorContains(t, err, want)
		require.Nil(t, ranks)
	}
}

// A program whose children nobody can wait for learns that the statuses of its ranks are lost.
func TestLostStatus(t *testing.T) {
	out, err := self("ignorant").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `^launch: (all ranks failed alike: the job failed after \S+\n  ranks 0, 1: ended with|rank [01] \(pid \d+\) was the first to fail, after \S+:) an unknown status, because another part of the launching program has waited for it\n`, string(out))
}

// An output that cannot be written is an error of a job that succeeds otherwise, and stands in the
// text of one that fails.
func TestBrokenOutput(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	job, _ := testJob(t, 1, "echo")
	job.Stdout = f
	ranks, err := job.Run(context.Background())
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorContains(t, err, "launch: standard output: ")
	require.Len(t, ranks, 1)
	require.NoError(t, ranks[0].Err)

	job, _ = testJob(t, 2, "exit")
	job.Stderr = f
	failed := failure(t, context.Background(), job)
	require.Equal(t, 1, failed.Rank)
	require.ErrorContains(t, failed, "\nstandard error: ")
}

// Jobs run beside each other, and beside other children of the program.
func TestBesideOthers(t *testing.T) {
	results := make(chan error, 3)
	for range 2 {
		job, _ := testJob(t, 2, "return")
		go func() {
			for range 5 {
				if _, err := job.Run(context.Background()); err != nil {
					results <- err
					return
				}
			}
			results <- nil
		}()
	}
	go func() {
		for i := range 50 {
			if err := exec.Command("/bin/sh", "-c", fmt.Sprintf("exit %d", i)).Run(); (err != nil) != (i > 0) {
				results <- fmt.Errorf("the program's own child: %w", err)
				return
			}
		}
		results <- nil
	}()
	for range 3 {
		require.NoError(t, <-results)
	}
}

// A job that fails starts anew. Its ranks are those of the last start.
func TestRestarts(t *testing.T) {
	job, _ := testJob(t, 2, "unlucky")
	errs := screen.New()
	job.MaxRestarts, job.RestartWindow, job.Stderr = 1, time.Hour, errs
	ranks, err := job.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, "1", string(ranks[1].Value))
	require.Regexp(t, `^launch: rank 1 \(pid \d+\) was the first to fail, after [^\n]*: exit status 3\n(.*\n)*launch: restart 1 in \d+ms\n$`, errs.String())

	job, _ = testJob(t, 2, "exit")
	job.MaxRestarts = 1
	_, err = job.Run(context.Background())
	var failed *launch.JobError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1, failed.Rank)
	require.ErrorContains(t, err, " of restart 1: exit status 3")
	job.RestartWindow = -1
	_, err = job.Run(context.Background())
	require.EqualError(t, err, "launch: Job.MaxRestarts is 1, and RestartWindow -1ns: want 0 or more")
}
