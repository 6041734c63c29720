package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/transport/shm"
)

const flightDocument = `{"version": 1, "job": "train", "size": 2, "writer": "goccl run", "ranks": [
 {"rank": 0, "groups": [{"id": "0", "rank": 0, "size": 2, "calls": [{"number": 1, "collective": "barrier", "state": "failed"}]}]},
 {"rank": 1, "groups": [{"id": "0", "rank": 1, "size": 2, "calls": []}]}]}`

// goccl inspect shows a directory of flight records and draws it.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "flight-train-goccl-run.json"), []byte(flightDocument), 0o600))
	trace := filepath.Join(dir, "a.json")
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"inspect", dir, "--trace", trace}, &out, &errs), errs.String())
	require.Equal(t, `job train, 2 ranks; records from goccl run

all ranks
  rank 0: call 1, barrier (failed)
  rank 1: no call
  the first difference: call 1
    rank 0: barrier
    rank 1: had not come
`, out.String())
	require.FileExists(t, trace)
}

// The list of running jobs is a table whose first column has the names alone.
func TestInspectListsJobs(t *testing.T) {
	now := time.Now()
	job := func(name string, age time.Duration, program string, states []string, pids ...int) inspect.Listed {
		return inspect.Listed{RunningJob: shm.RunningJob{Name: name, Ranks: len(pids), PIDs: pids, States: states, Made: now.Add(-age)}, Program: program}
	}
	var out bytes.Buffer
	require.NoError(t, writeJobs(&out, []inspect.Listed{
		job("goccl-9f0c61d2a87b3e45-1", 150*time.Second+time.Millisecond, "train -batch 1024", []string{"gone", "running", "stopped"}, 0, 19508, 19509),
		job("j", 999*time.Millisecond, "", []string{"elsewhere"}, 0),
		job("k", 0, "", []string{"gone"}, 0),
		job("l", 0, "", []string{"running"}, 5),
	}, now))
	require.Equal(t, `JOB                       RANKS  PID    AGE    STATE                        PROGRAM
goccl-9f0c61d2a87b3e45-1  3      19508  2m30s  rank 0 gone, rank 2 stopped  train -batch 1024
j                         1      -      0s     rank 0 elsewhere             -
k                         1      -      0s     rank 0 gone                  -
l                         1      5      0s     running                      -
`+noPID, out.String())
	out.Reset()
	require.NoError(t, writeJobs(&out, nil, now))
	require.Equal(t, "no job of this user is running\n", out.String())
}

func TestInspectRefuses(t *testing.T) {
	var out, errs bytes.Buffer
	require.NotZero(t, run(t.Context(), []string{"inspect", t.TempDir()}, &out, &errs))
	require.Contains(t, errs.String(), "no flight records")
	errs.Reset()
	require.NotZero(t, run(t.Context(), []string{"inspect", "no-such-job-" + time.Now().Format("150405")}, &out, &errs))
	require.Contains(t, errs.String(), "goccl: error: ")
	errs.Reset()
	require.NotZero(t, run(t.Context(), []string{"inspect", os.Args[0]}, &out, &errs))
	require.Contains(t, errs.String(), "; of a file name the directory\n")
	for want, args := range map[string][]string{
		"name a directory":                        {"--late", "1s"},
		"name a directory of flight recorders":    {"--trace", "x"},
		"--json lists the running jobs":           {"--json", t.TempDir()},
		"no job \"no-such-job\" of this user":     {"no-such-job", "--health"},
		"--limit 1s: want more than 0":            {"--limit=1s"},
		"--limit -1s: want more than 0":           {"--health", "--limit=-1s"},
		"--health excludes":                       {"--health", "--late=1s"},
		"--step x.txt: the name must end in .svg": {"--step", "x.txt", t.TempDir()},
	} {
		errs.Reset()
		require.Equal(t, 2, run(t.Context(), append([]string{"inspect"}, args...), &out, &errs))
		require.Contains(t, errs.String(), want)
	}
}
