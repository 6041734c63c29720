//go:build unix

package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/cores"
	"github.com/goccl/goccl/test/screen"
	"github.com/goccl/goccl/transport/shm"
)

// asProgram is a variable that makes the test binary one of the programs below, chosen by
// its first argument.
const asProgram = "TEST_GOCCL_AS_PROGRAM"

// asPrefix is a variable that has cores.LockPrefix, the same for all processes of a test.
const asPrefix = "TEST_GOCCL_LOCK_PREFIX"

func TestMain(m *testing.M) {
	reexecutedElsewhere()
	// Jobs of this machine hold no cores that tests expect to be free.
	if os.Getenv(asPrefix) == "" {
		os.Setenv(asPrefix, fmt.Sprintf("goccl-test-%d", os.Getpid()))
	}
	cores.LockPrefix = os.Getenv(asPrefix)
	if os.Getenv(asProgram) != "" && !strings.HasPrefix(os.Args[1], "-test.") { // as processes that fuzz have
		programs[os.Args[1]](os.Args[2:])
		os.Exit(0)
	}
	os.Setenv(asProgram, "1")
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // a second for each program
	os.Exit(m.Run())
}

// reexecutedElsewhere calls Reexecuted on another thread than the process's first: the
// scheduler may move the main goroutine there at any time.
func reexecutedElsewhere() {
	runtime.LockOSThread() // the first thread is in use
	defer runtime.UnlockOSThread()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		Reexecuted(sharedMemory)
	}()
	<-returned
}

// programs are run by ranks. Tests add more.
var programs = map[string]func(args []string){
	// Prints its arguments.
	"echo": func(args []string) { fmt.Println(strings.Join(args, " ")) },
	// Reports that it is up and runs until a signal ends it.
	"stay": func([]string) { stay() },
	// The same without output.
	"sleep": func([]string) { time.Sleep(time.Hour) },
	// Ignores all signals but SIGKILL.
	"stubborn": func([]string) {
		signal.Ignore(Signals...)
		stay()
	},
	// Ends with the status of its argument, if its rank is the other argument.
	"exit": func(args []string) {
		if os.Getenv("RANK") == args[0] {
			os.Exit(number(args[1]))
		}
	},
	// Runs a job of the other programs.
	"launcher": func(args []string) {
		job := testJob(number(args[0]), args[1:]...)
		job.Stdin, job.Stdout, job.Stderr = os.Stdin, os.Stdout, os.Stderr
		job.Grace, job.OwnsChildren = time.Minute, true
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, Signals...)
		job.Signals = signals
		if err := runError(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			var status interface{ ExitCode() int }
			if errors.As(err, &status) {
				os.Exit(status.ExitCode())
			}
			os.Exit(99)
		}
	},
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func stay() {
	fmt.Println("up")
	time.Sleep(time.Hour)
}

func self() string {
	file, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return file
}

// command is one of the programs.
func command(args ...string) *exec.Cmd {
	c := exec.Command(self(), args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	return c
}

// testJob is a job that runs one of the programs.
func testJob(ranks int, args ...string) *Spec {
	return &Spec{
		Ranks: ranks, Program: self(), Args: append([]string{"program"}, args...),
		Grace: time.Minute, Environment: os.Environ(), Stdout: io.Discard, Stderr: io.Discard,
		Memory: sharedMemory,
	}
}

// sharedMemory is the memory of ranks that use the transport shm.
var sharedMemory = MemoryOf(shm.OpenFlight, shm.OpenNodeFlight, shm.RemoveLeftovers)

// runError runs a job and returns its error.
func runError(job *Spec) error {
	_, err := job.Run(context.Background())
	return err
}

// running is a job in its own goroutine.
type running struct {
	*Spec
	out, err *screen.Screen
	signals  chan os.Signal
	ended    chan error
}

func start(job *Spec) *running {
	r := &running{Spec: job, out: screen.New(), err: screen.New(), signals: make(chan os.Signal), ended: make(chan error, 1)}
	job.Stdout, job.Stderr, job.Signals = r.out, r.err, r.signals
	go func() { r.ended <- runError(job) }()
	return r
}

// failure returns the error of a job that fails.
func (r *running) failure(t *testing.T) *EndedError {
	t.Helper()
	select {
	case err := <-r.ended:
		var ended *EndedError
		require.ErrorAs(t, err, &ended)
		return ended
	case <-time.After(time.Minute):
		t.Fatal("the job does not end")
		return nil
	}
}

// kill kills a process of a test.
func kill(t *testing.T, pid int) {
	t.Helper()
	require.Greater(t, pid, 1)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}
