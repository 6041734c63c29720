package launcher

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/atomicfile"
	"github.com/goccl/goccl/internal/flight"
)

func init() {
	// Is killed while it writes a file of the flight recorder.
	programs["half"] = func([]string) {
		panic(atomicfile.Replace(filepath.Join(os.Getenv("GOCCL_FLIGHT"), "flight-x.json"), false, func(f *os.File) error {
			if _, err := f.WriteString("{"); err != nil {
				return err
			}
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}))
	}
	// Makes a call, shows its process id and stays.
	programs["recorded"] = func([]string) {
		if err := dist.Spawn(func(context.Context, int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			if err := dist.Barrier(dist.WithLabel("the last call")); err != nil {
				return err
			}
			fmt.Printf("pid=%d.\n", os.Getpid())
			time.Sleep(time.Hour)
			return nil
		}); err != nil {
			log.Fatal(err)
		}
	}
}

// The records of a job are written even if all of its ranks are killed at once.
func TestFlightOfTheDead(t *testing.T) {
	job := testJob(3, "recorded")
	job.Flight = filepath.Join(t.TempDir(), "flight")
	r := start(job)
	r.out.Await(t, "pid=", 3)
	require.Eventually(t, holdsMemory, time.Minute, 5*time.Millisecond)
	for _, pid := range regexp.MustCompile(`pid=(\d+)\.`).FindAllStringSubmatch(r.out.String(), -1) {
		_ = syscall.Kill(number(pid[1]), syscall.SIGKILL) // the launcher may have killed it before
	}
	r.failure(t)
	documents, _, err := flight.Load(job.Flight)
	require.NoError(t, err)
	require.Len(t, documents, 1)
	d := documents[0]
	require.Equal(t, []any{"goccl run", 3}, []any{d.Writer, d.Size})
	require.Len(t, d.Ranks, 3)
	for _, rank := range d.Ranks {
		require.Equal(t, `call 1, barrier "the last call" (done)`, rank.Groups[0].Calls[0].String())
	}
	require.False(t, holdsMemory())
}

// holdsMemory reports whether this process, which is the launcher, has mapped a job's memory. While
// it looks for the memory, it also opens that of other jobs, but maps none.
func holdsMemory() bool {
	maps, err := os.ReadFile("/proc/self/maps")
	return err == nil && strings.Contains(string(maps), " /dev/shm/")
}

// A warning comes when a rank becomes slow, and when none is slow any more, and not each second.
func TestWarnOfSlow(t *testing.T) {
	var warnings []Warning
	l := &launcher{Spec: &Spec{Warn: func(w Warning) { warnings = append(warnings, w) }}, attempt: newAttempt(&Restarts{})}
	l.flight.slow = -1
	var ranks []flight.Rank
	for rank := range 4 {
		var calls []flight.Call
		for n := range 10 {
			begun := time.Unix(int64(n), int64(rank/3*200)*int64(time.Millisecond))
			calls = append(calls, flight.Call{Number: uint64(n + 1), State: flight.StateDone, Begun: begun, Ended: begun.Add(time.Second)})
		}
		ranks = append(ranks, flight.Rank{Rank: rank, Groups: []flight.GroupCalls{{Calls: calls}}})
	}
	w := flight.NewWindow()
	for range 2 {
		w.Add(ranks, time.Unix(10, 0))
		l.warnOfSlow(w.Waiting())
	}
	w.Add(ranks, time.Unix(100, 0))
	for range 2 {
		l.warnOfSlow(w.Waiting())
	}
	require.Equal(t, []Warning{
		{Rank: 3, Text: "rank 3 is slow: the others wait 20% of their time for it, which is 100% of all waiting (goccl inspect --health)"},
		{Rank: -1, Text: "no rank is slow any more"},
	}, warnings)
}

// A file that a rank was killed in the middle of is removed.
func TestHalfOfAFlight(t *testing.T) {
	job := testJob(1, "half")
	job.Flight = t.TempDir()
	job.Environment = append(job.Environment, "GOCCL_FLIGHT="+job.Flight)
	require.Equal(t, syscall.SIGKILL, start(job).failure(t).Ranks[0].Signal)
	files, err := os.ReadDir(job.Flight)
	require.NoError(t, err)
	require.Empty(t, files)
}

// A job that succeeds leaves no records. A directory that cannot be made is an error, before the job
// starts or when it has ended.
func TestFlightIsForFailures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	job := testJob(2, "echo")
	job.Flight = file
	require.NoError(t, runError(job))
	files, err := os.ReadDir(file)
	require.NoError(t, err)
	require.Empty(t, files)

	job = testJob(2, "recorded")
	job.Flight = filepath.Join(file, "x")
	r := start(job)
	r.out.Await(t, "pid=", 2)
	require.Eventually(t, holdsMemory, time.Minute, 5*time.Millisecond)
	require.NoError(t, os.RemoveAll(file))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var refused *RefusedError
	require.ErrorAs(t, runError(job), &refused)
	require.Equal(t, statusUsage, refused.ExitCode())
	require.ErrorContains(t, refused, "the flight recorders of the ranks: mkdir "+file)
	r.signals <- syscall.SIGTERM
	select {
	case err := <-r.ended:
		require.ErrorContains(t, err, "SIGTERM")
		require.ErrorContains(t, err, "the flight recorders of the ranks: "+job.Flight)
	case <-time.After(time.Minute):
		t.Fatal("the job does not end")
	}
}
