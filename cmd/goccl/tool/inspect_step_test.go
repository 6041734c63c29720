package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/flight"
)

// asTrainer makes the test binary a rank that trains.
const asTrainer = "TEST_GOCCL_AS_TRAINER"

// trainingRanks is the number of ranks that train; the last of them is late.
const trainingRanks = 3

var errBackward = errors.New("backward has failed")

// trainSteps trains a model of two buckets. Before each backward it waits for an order: to go on, or to fail.
func trainSteps(ctx context.Context, orders <-chan bool) error {
	group, err := dist.Default()
	if err != nil {
		return err
	}
	r, err := ddp.New(ctx, group, []ddp.Parameter{
		ddp.Param("a", make([]float64, 100), nil), ddp.Param("b", make([]float64, 100), nil),
	}, ddp.Options{FirstBucketBytes: 8, BucketBytes: 8})
	if err != nil {
		return err
	}
	for range 3 {
		if !<-orders {
			return errBackward
		}
		r.Ready(1)
		r.Ready(0)
		if err := r.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// trainAsRank is the worker of a process, which gets its orders from its standard input.
func trainAsRank() {
	orders := make(chan bool)
	go func() {
		var b [1]byte
		for {
			if _, err := os.Stdin.Read(b[:]); err != nil {
				return
			}
			orders <- b[0] == '+'
		}
	}()
	err := dist.Spawn(func(ctx context.Context, _ int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		return trainSteps(ctx, orders)
	})
	if err != nil {
		os.Exit(1)
	}
}

// A trainingJob is ranks that run trainSteps.
type trainingJob struct {
	order func(rank int, goOn bool)
	what  func() string // the argument of goccl inspect while it runs
	end   func()        // waits until all ranks have ended
}

func trainByProcesses(t *testing.T, dir string) trainingJob {
	name := fmt.Sprintf("inspect-step-%d", os.Getpid())
	var inputs []io.Writer
	var running sync.WaitGroup
	for rank := range trainingRanks {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), asTrainer+"=1", "GOCCL_FLIGHT="+dir, "GOCCL_SHM_NAME=/"+name,
			fmt.Sprint("GOCCL_SHM_RANK=", rank), fmt.Sprint("GOCCL_SHM_SIZE=", trainingRanks))
		in, err := c.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		inputs = append(inputs, in)
		running.Go(func() { _ = c.Wait() }) // ranks end with the error of the step
	}
	return trainingJob{
		order: func(rank int, goOn bool) {
			_, err := inputs[rank].Write([]byte(map[bool]string{true: "+", false: "-"}[goOn]))
			require.NoError(t, err)
		},
		what: func() string { return name },
		end:  running.Wait,
	}
}

func trainByGoroutines(t *testing.T, dir string) trainingJob {
	var orders [trainingRanks]chan bool
	for rank := range orders {
		orders[rank] = make(chan bool, 3)
	}
	ended := make(chan struct{})
	groups := make(chan *dist.ProcessGroup, trainingRanks)
	go func() {
		defer close(ended)
		_ = dist.Spawn(func(ctx context.Context, rank int) error { // it fails with the error of the step
			if err := dist.InitProcessGroup("ccl", dist.WithFlight(dir)); err != nil {
				return err
			}
			g, err := dist.Default()
			if err != nil {
				return err
			}
			groups <- g
			return trainSteps(ctx, orders[rank])
		}, dist.WithRanks(trainingRanks))
	}()
	g := <-groups
	return trainingJob{
		order: func(rank int, goOn bool) { orders[rank] <- goOn },
		what: func() string {
			require.NoError(t, g.Communicator().WriteFlight())
			return dir
		},
		end: func() { <-ended },
	}
}

// awaitOthers waits until all ranks but the last have come to the first bucket of a step.
func (j trainingJob) awaitOthers(t *testing.T, step int) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); ; {
		require.True(t, time.Now().Before(limit), "the ranks do not come to step %d", step)
		read := inspectCommand{What: j.what()}
		job, err := read.read()
		if err != nil {
			continue // no rank has joined
		}
		come := 0
		for _, r := range job.Ranks[:min(trainingRanks-1, len(job.Ranks))] {
			if n := len(r.Marks); n == 0 || r.Marks[n-1].Step != step || r.Marks[n-1].Label != "wait" {
				continue
			}
			calls := r.Groups[len(r.Groups)-1].Calls
			if last := calls[len(calls)-1]; last.Label == "bucket 0" && last.State == flight.StateBegun {
				come++
			}
		}
		if come == trainingRanks-1 {
			return
		}
	}
}

// One step of a running job, and the step in which a job has failed, are drawn from its memory or files: each
// rank's parts and buckets, and the wait for the rank that is late.
func TestInspectStep(t *testing.T) {
	late := fmt.Sprintf(" for rank %d", trainingRanks-1)
	ways := map[string]func(*testing.T, string) trainingJob{"goroutines": trainByGoroutines}
	if runtime.GOOS == "linux" { // elsewhere ranks are goroutines
		ways["processes"] = trainByProcesses
	}
	for name, start := range ways {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := start(t, dir)
			for step := 1; step <= 3; step++ {
				for rank := range trainingRanks - 1 {
					j.order(rank, true)
				}
				j.awaitOthers(t, step)
				if step == 3 {
					for rank, drawn := range drawStep(t, j.what(), 2, late) {
						require.Equal(t, []string{"compute", "backward", "wait"}, drawn[0], "rank %d", rank)
						calls := strings.Join(drawn[1], ", ")
						if rank < trainingRanks-1 {
							require.Contains(t, calls, "bucket 0, waits for the last rank, transfer, bucket 1")
						} else {
							require.Contains(t, calls, "bucket 0, transfer, bucket 1", "it is the last")
						}
					}
				}
				j.order(trainingRanks-1, step < 3)
			}
			j.end()
			drawn := drawStep(t, dir, 3, late)
			for rank := range trainingRanks - 1 {
				require.Equal(t, []string{"compute", "backward", "wait", "failed"}, drawn[rank][0])
				require.Contains(t, drawn[rank][1], "bucket 0")
			}
			require.Equal(t, []string{"compute"}, drawn[trainingRanks-1][0])
		})
	}
}

// The last step of a job of goroutines that has succeeded is drawn from the files that it writes at its end, whether or not
// the program destroys its group.
func TestInspectStepAtEnd(t *testing.T) {
	for name, end := range map[string]func(...dist.CallOption) error{
		"destroyed": dist.DestroyProcessGroup,
		"returned":  func(...dist.CallOption) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("GOCCL_FLIGHT", dir)
			for _, atEnd := range []string{"", "true"} {
				t.Setenv("GOCCL_FLIGHT_END", atEnd)
				require.NoError(t, dist.Spawn(func(ctx context.Context, _ int) error {
					if err := dist.InitProcessGroup("ccl"); err != nil {
						return err
					}
					orders := make(chan bool, 3)
					for range cap(orders) {
						orders <- true
					}
					return errors.Join(trainSteps(ctx, orders), end())
				}, dist.WithRanks(trainingRanks)))
				files, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Len(t, files, map[string]int{"true": trainingRanks}[atEnd])
			}
			for rank, drawn := range drawStep(t, dir, 3, "") {
				require.Equal(t, []string{"compute", "backward", "wait"}, drawn[0], "rank %d", rank)
				require.Contains(t, drawn[1], "bucket 1")
			}
		})
	}
}

// drawStep draws a step by the command and returns the names of the trace's events by rank and thread. waits is in the
// text of the first bucket of all ranks but the last.
func drawStep(t *testing.T, what string, step int, waits string) (names [trainingRanks][2][]string) {
	t.Helper()
	svg, trace := filepath.Join(t.TempDir(), "step.svg"), filepath.Join(t.TempDir(), "step.json")
	for _, file := range []string{svg, trace} {
		var out, errs bytes.Buffer
		require.Zero(t, run(t.Context(), []string{"inspect", "--step", file, what}, &out, &errs), errs.String())
	}
	picture, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(picture, new(struct{})))
	require.Contains(t, string(picture), fmt.Sprintf(">step %d of job ", step))
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	var read struct {
		OtherData   map[string]string
		TraceEvents []struct {
			Name     string
			Ph       string
			PID, TID int
			TS, Dur  float64
			Args     map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, strconv.Itoa(step), read.OtherData["step"])
	for _, e := range read.TraceEvents {
		if e.Ph == "X" && e.TID < 2 {
			require.GreaterOrEqual(t, e.TS, 0.0)
			names[e.PID][e.TID] = append(names[e.PID][e.TID], e.Name)
			if e.Name == "bucket 0" && e.PID < trainingRanks-1 {
				require.Contains(t, e.Args["call"], waits)
			}
		}
	}
	return names
}
