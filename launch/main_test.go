//go:build unix

package launch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/launch"
)

// asProgram is a variable that makes a process that is no rank one of the programs below, and not a
// run of the tests.
const asProgram = "TEST_GOCCL_LAUNCH_PROGRAM"

// mark is a variable that all descendants of a test have.
const mark = "TEST_GOCCL_LAUNCH_MARK"

func TestMain(m *testing.M) {
	log.SetFlags(0)
	if name := os.Getenv(asProgram); name != "" && !launch.IsRank() {
		programs[name]()
		os.Exit(0)
	}
	if launch.IsRank() && programs[os.Args[1]] != nil {
		programs[os.Args[1]]()
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // a second for each process
	os.Exit(m.Run())
}

// programs are run by ranks, by the name that is their first argument, and by processes with
// asProgram.
var programs = map[string]func(){
	"echo": func() {
		fmt.Println(strings.Join(os.Args[2:], " "), os.Getenv("ORDINARY"))
		fmt.Fprintln(os.Stderr, "a word")
	},
	"stay":   stay,
	"return": func() { must(launch.Return(map[string]string{"rank": os.Getenv("RANK")})) },
	"diverge": func() {
		must(launch.Return(struct {
			Loss float64
			Best []float32
		}{math.NaN(), []float32{float32(math.Inf(1)), float32(math.Inf(-1)), 1.5}}))
	},
	"nan": func() { must(launch.Return(math.NaN())) },
	"stubborn": func() {
		signal.Ignore(syscall.SIGTERM)
		stay()
	},
	"exit": func() {
		if os.Getenv("RANK") == "1" {
			fmt.Fprintln(os.Stderr, "out of luck")
			os.Exit(3)
		}
		stay()
	},
	// Rank 1 fails at first.
	"unlucky": func() {
		restart := os.Getenv("GOCCL_RESTART")
		if os.Getenv("RANK") == "1" && restart == "0" {
			os.Exit(3)
		}
		must(launch.Return(json.RawMessage(restart)))
	},
	// Asks nothing and starts ranks.
	"forgetful": func() {
		job := launch.Job{Ranks: 2, Args: []string{"forgetful"}}
		if _, err := job.Run(context.Background()); err != nil {
			log.Fatal(err)
		}
	},
	"ignorant": func() {
		signal.Ignore(syscall.SIGCHLD)
		job := launch.Job{Ranks: 2, Args: []string{"return"}}
		_, err := job.Run(context.Background())
		fmt.Println(err)
	},
	"family": func() {
		job := launch.Job{Ranks: 2, Args: []string{"stay"}, Stdout: os.Stdout}
		_, err := job.Run(context.Background())
		must(err)
	},
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// stay reports that it is up and runs until a signal ends it.
func stay() {
	fmt.Println("job", os.Getenv("GOCCL_SHM_NAME"))
	fmt.Println("up")
	time.Sleep(time.Hour)
}

// inGroup makes a program of ranks that join; the last part is the worker's own.
func inGroup(worker func(rank int) error) func() {
	return func() {
		if os.Getenv("RANK") == "0" { // what the others write would be a part of their errors
			fmt.Println("job", os.Getenv("GOCCL_SHM_NAME"))
		}
		must(dist.Spawn(func(_ context.Context, rank int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			if err := worker(rank); err != nil {
				return err
			}
			return dist.DestroyProcessGroup()
		}))
	}
}

// testJob is a job of one of the programs. All its processes have the mark that it returns.
func testJob(t *testing.T, ranks int, args ...string) (job *launch.Job, value string) {
	t.Helper()
	value = fmt.Sprintf("%d.%s", os.Getpid(), t.Name())
	return &launch.Job{
		Ranks: ranks, Args: args, Env: append(os.Environ(), mark+"="+value), Grace: time.Minute, Pin: launch.PinOff,
	}, value
}

// failure runs a job that fails.
func failure(t *testing.T, ctx context.Context, job *launch.Job) *launch.JobError {
	t.Helper()
	ranks, err := job.Run(ctx)
	failed, ok := errors.AsType[*launch.JobError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, ranks, failed.Ranks)
	require.Len(t, ranks, job.Ranks)
	for i, r := range ranks {
		require.Equal(t, i, r.Rank)
		require.Positive(t, r.PID)
		require.Positive(t, r.Wall)
		require.Equal(t, r.ExitStatus == 0, r.Err == nil, "%+v", r)
		require.Equal(t, r.Signal != nil, r.ExitStatus == -1, "%+v", r)
	}
	return failed
}

// self is a command that runs one of the programs, not as a rank.
func self(program string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), asProgram+"="+program)
	return c
}
