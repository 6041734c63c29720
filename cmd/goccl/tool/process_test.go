package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/cores"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/launcher"
)

// asProgram makes the test binary the program goccl, with an algorithm that is wrong.
const asProgram = "TEST_GOCCL_AS_PROGRAM"

// asPrefix is a variable that has cores.LockPrefix: other jobs of this machine hold no cores that
// tests expect to be free.
const asPrefix = "TEST_GOCCL_LOCK_PREFIX"

// asWorker makes the test binary a rank that works 100 ms and then makes a call, again and again. The variable has the rank that works for
// 20 ms more, or "turns": each rank in turn works for 100 ms more.
const asWorker = "TEST_GOCCL_AS_WORKER"

func TestMain(m *testing.M) {
	launcher.Reexecuted(memory)
	if os.Getenv(asPrefix) == "" {
		os.Setenv(asPrefix, fmt.Sprintf("goccl-test-%d", os.Getpid()))
	}
	cores.LockPrefix = os.Getenv(asPrefix)
	if os.Getenv(asJoiner) != "" && os.Getenv(asProgram) == "" {
		joinAsRank(os.Getenv(asJoiner))
		return
	}
	if os.Getenv(asFollower) != "" && os.Getenv(asProgram) == "" {
		followAsRank()
		return
	}
	if os.Getenv(asProgram) != "" {
		ccl.Register(wrong())
		ccl.Register(deadly())
		Main()
	}
	if slow := os.Getenv(asWorker); slow != "" {
		workAsRank(slow)
		return
	}
	if job := os.Getenv(asRankZero); job != "" {
		waitForRankOne(job)
	}
	if os.Getenv(asTrainer) != "" {
		trainAsRank()
		return
	}
	if os.Getenv(asWaiter) != "" {
		waitAsRank()
		return
	}
	os.Exit(m.Run())
}

// asJoiner makes the test binary a rank that joins the others, and then ends well or with an error.
const asJoiner = "TEST_GOCCL_AS_JOINER"

func joinAsRank(how string) {
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		if err := launchenv.SendValue(os.Getenv, []byte("7")); err != nil {
			return err
		}
		if err := dist.Barrier(); err != nil {
			return err
		}
		if how == "error" && rank == 1 {
			return errors.New("no such shard")
		} else if how == "error" {
			return dist.Barrier()
		}
		return dist.DestroyProcessGroup()
	})
	if err != nil {
		os.Exit(1)
	}
}

// asFollower makes the test binary a rank that makes a call for each byte of rank 0's standard input,
// and then writes its metrics.
const asFollower = "TEST_GOCCL_AS_FOLLOWER"

func followAsRank() {
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		group, err := dist.Default()
		if err != nil {
			return err
		}
		for step, read := 0, []byte{1}; read[0] == 1; step++ {
			group.Communicator().Mark("read", step)
			if b := make([]byte, 1); rank == 0 {
				n, _ := os.Stdin.Read(b) // 0 at its end
				read[0] = byte(n)
			}
			if err := dist.Broadcast(read, 0); err != nil {
				return err
			}
		}
		return errors.Join(dist.WriteMetrics(os.Stdout), dist.DestroyProcessGroup())
	})
	if err != nil {
		os.Exit(1)
	}
}

// asWaiter makes the test binary a rank that makes a barrier, and another one for each byte of its standard input.
const asWaiter = "TEST_GOCCL_AS_WAITER"

func waitAsRank() {
	_ = dist.Spawn(func(context.Context, int) error {
		err := dist.InitProcessGroup("ccl")
		for b := make([]byte, 1); err == nil; _, err = os.Stdin.Read(b) {
			if failed := dist.Barrier(); failed != nil {
				return failed
			}
		}
		return err
	})
}

// wrong is ring, except that it spoils rank 0's first element.
func wrong() *ccl.Algorithm {
	ring := ccl.DefaultRegistry()["ring"]
	kernel := *ring.Kernels[ccl.CollAllReduce]
	kernel.Run = func(c *ccl.Call) error {
		err := ring.Kernels[ccl.CollAllReduce].Run(c)
		if c.Rank() == 0 {
			c.Out().Bytes()[0] ^= 1
		}
		return err
	}
	return &ccl.Algorithm{
		Name:    "wrong",
		Doc:     "for tests",
		Params:  ring.Params,
		Kernels: map[ccl.Collective]*ccl.Kernel{ccl.CollAllReduce: &kernel},
	}
}

// deadly is ring, except that it kills the process of rank 1.
func deadly() *ccl.Algorithm {
	algorithm := wrong()
	kernel := algorithm.Kernels[ccl.CollAllReduce]
	right := kernel.Run
	kernel.Run = func(c *ccl.Call) error {
		if c.Rank() == 1 {
			p, _ := os.FindProcess(os.Getpid())
			_ = p.Kill()
		}
		return right(c)
	}
	algorithm.Name = "deadly"
	return algorithm
}

func program(t *testing.T, args ...string) (c *exec.Cmd, stderr *bytes.Buffer) {
	c = exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	stderr = new(bytes.Buffer)
	c.Stderr = stderr
	return c, stderr
}

// Wrong results are in the table and fail the program.
func TestWrongKernel(t *testing.T) {
	alone(t)
	writeFile(t, "ccl.yaml", "version: 1\nalgorithms: {wrong: {module: wrong}, direct: {module: direct}}\ndefaults: {algorithm: direct}\n")
	c, stderr := program(t, bench("--ranks=2", "--algorithm=direct,wrong", "-b1K", "-e4K", "--json=a.json")...)
	stdout, err := c.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Equal(t, "goccl: error: 2 rows have wrong results\n", stderr.String())
	require.Regexp(t, `(?m)^ +1KiB direct .*[0-9]$`, string(stdout))
	require.Regexp(t, `(?m)^ +1KiB wrong .* 2 wrong elements$`, string(stdout))
	require.Contains(t, string(stdout), "\n4 elements are wrong; in the same rounds: barrier ")
	require.FileExists(t, "a.json")
}

// The first interrupt makes the program end by itself, with its results so far.
func TestInterruptedProgram(t *testing.T) {
	alone(t)
	c, stderr := program(t, "bench", "--ranks=2", "-b4", "-e16", "--time=1h", "--max-calls=1000000000", "--json=a.json")
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	head, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(head, "machine "), head)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	require.Error(t, c.Wait())
	require.Equal(t, 1, c.ProcessState.ExitCode())
	require.Equal(t, "goccl: error: interrupted\n", stderr.String())
}

func workAsRank(slow string) {
	if err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		gradients := make([]float32, 32<<10)
		for step := 0; ; step++ {
			work := 100 * time.Millisecond
			switch {
			case slow == fmt.Sprint(rank):
				work += 20 * time.Millisecond
			case slow == "turns" && step%4 == rank:
				work += 100 * time.Millisecond
			}
			time.Sleep(work) // it is what the program does
			if err := dist.AllReduce(gradients, dist.Avg); err != nil {
				return err
			}
		}
	}); err != nil {
		os.Exit(1)
	}
}
