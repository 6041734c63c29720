package ddp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

// A work is what each rank of a test does, as a goroutine or as a process.
type work func(rank, ranks int, o *outcome) error

// works are the works by name: a process gets the name.
var works = map[string]work{
	"follow one rank":            followOneRank,
	"uneven inputs":              unevenInputs,
	"unused":                     leaveOut,
	"not ready":                  notReady,
	"error":                      endByError,
	"panic":                      endByPanic,
	"kill":                       endByKill,
	"accumulated":                accumulate,
	"outside":                    accumulateOutside,
	"join ends within a step":    joinEndsWithinStep,
	"join refused":               joinRefused,
	"cancelled steps":            cancelledSteps,
	"failed finish":              failedFinish,
	"after the end":              afterTheEnd,
	"ends within methods":        endsWithinMethods,
	"empty parameters":           emptyParameters,
	"save beside load":           saveBesideLoad,
	"call beside bucket":         callBesideBucket,
	"verify":                     verify,
	"ready grad":                 readyGrad,
	"hook panics":                hookPanics,
	"out of data":                thenOutOfData(impatientLoss),
	"waits for rank out of data": thenOutOfData(patientLoss),
	"closes out of data":         thenOutOfData(closeThenLoss),
	"reducers in two orders":     reducersInTwoOrders,
	"saves alone":                saving(awaitMessage),
	"saves beside a step":        saving(aStep),
	"saves beside a call":        saving(patientLoss),
	"files of other tools":       filesOfOtherTools,
}

// An outcome is what a rank has found out. Err is the text of its work's error.
type outcome struct {
	Values    []float64
	Texts     []string
	Err       string
	AbortedBy *int // the rank, if the error has a *dist.AbortedError
	Lost      *int // the rank, if it has a *dist.PeerLostError
}

// play does a work on a rank that has started.
func play(name string, o *outcome) error {
	if err := dist.InitProcessGroup("ccl"); err != nil {
		return err
	}
	group, err := dist.Default()
	if err != nil {
		return err
	}
	if err = works[name](group.Rank(), group.Size(), o); err == nil {
		return dist.DestroyProcessGroup()
	}
	o.Err = err.Error()
	if aborted, ok := errors.AsType[*dist.AbortedError](err); ok {
		o.AbortedBy = &aborted.By
	}
	if lost, ok := errors.AsType[*dist.PeerLostError](err); ok {
		o.Lost = &lost.Rank
	}
	return err
}

// workVariable makes the test binary a rank that does this work and writes its outcome.
const workVariable = "TEST_DDP_WORK"

func TestMain(m *testing.M) {
	name := os.Getenv(workVariable)
	if name == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // a second for each process
		os.Exit(m.Run())
	}
	var o outcome
	err := dist.Spawn(func(context.Context, int) error {
		if name == "plans" {
			return runPlans(&o)
		}
		return play(name, &o)
	})
	if err != nil && o.Err == "" && name != "plans" {
		o.Err = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		panic(err)
	}
}

// onGoroutines does a work on ranks that are goroutines.
func onGoroutines(_ *testing.T, name string, ranks int) []outcome {
	all := make([]outcome, ranks)
	err := dist.Spawn(func(_ context.Context, rank int) error { return play(name, &all[rank]) }, dist.WithRanks(ranks))
	for rank := range all {
		if all[rank].Err == "" && err != nil {
			all[rank].Err = err.Error() // a panic is an error of Spawn
		}
	}
	return all
}

var jobs atomic.Int64

// onProcesses does a work on ranks that are processes.
func onProcesses(t *testing.T, name string, ranks int) []outcome {
	t.Helper()
	return startProcesses(t, name, ranks)
}

// byTCP is the variable of processes that TCP connects, each as on a node of its own.
const byTCP = "GOCCL_TRANSPORT=tcp"

// startProcesses does a work on ranks that are processes with more variables.
func startProcesses(t *testing.T, name string, ranks int, variables ...string) []outcome {
	t.Helper()
	all, errs := make([]outcome, ranks), make([]error, ranks)
	job := fmt.Sprintf("/ddp-test-%d-%d", os.Getpid(), jobs.Add(1))
	env := slices.Clone(variables)
	dir := t.TempDir() // where those find each other that TCP connects
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GOCCL_") {
			env = append(env, v)
		}
	}
	var running sync.WaitGroup
	for rank := range all {
		running.Go(func() {
			c := exec.CommandContext(t.Context(), os.Args[0])
			c.Env = append(env[:len(env):len(env)], workVariable+"="+name, "GOCCL_SHM_NAME="+job,
				fmt.Sprint("GOCCL_SHM_RANK=", rank), fmt.Sprint("GOCCL_SHM_SIZE=", ranks))
			if slices.Contains(variables, byTCP) {
				c.Env = append(c.Env, fmt.Sprint("GROUP_RANK=", rank), fmt.Sprint("GOCCL_RESULT_FILE=", dir, "/result-", rank))
			}
			out, err := c.Output()
			if err != nil {
				all[rank].Err = err.Error() // it was killed
				return
			}
			if err := json.Unmarshal(out, &all[rank]); err != nil {
				errs[rank] = fmt.Errorf("rank %d writes %q: %w", rank, out, err)
			}
		})
	}
	running.Wait()
	require.NoError(t, errors.Join(errs...))
	files, err := filepath.Glob("/dev/shm/*" + job[1:] + "*")
	require.NoError(t, err)
	require.Empty(t, files, "the job leaves them behind")
	return all
}

// kinds are the kinds of ranks.
func kinds() map[string]func(t *testing.T, name string, ranks int) []outcome {
	all := map[string]func(*testing.T, string, int) []outcome{"goroutines": onGoroutines}
	if runtime.GOOS == "linux" { // elsewhere ranks are goroutines
		all["processes"] = onProcesses
	}
	return all
}

// everywhere does a work on goroutines and on processes, 1, 2, 3, 4 and 7 of them but no fewer than least, and checks what
// ranks have found out.
func everywhere(t *testing.T, name string, least int, check func(t *testing.T, all []outcome)) {
	for kind, do := range kinds() {
		for _, ranks := range []int{1, 2, 3, 4, 7} {
			if ranks >= least {
				t.Run(fmt.Sprintf("%s=%d", kind, ranks), func(t *testing.T) { check(t, do(t, name, ranks)) })
			}
		}
	}
}

// succeeded fails the test if a rank has failed.
func succeeded(t *testing.T, all []outcome) {
	t.Helper()
	for rank, o := range all {
		require.Empty(t, o.Err, "rank %d", rank)
	}
}
