package launch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/cores"
	"github.com/goccl/goccl/launch"
	"github.com/goccl/goccl/test/screen"
)

var errShard = errors.New("no such shard")

func init() {
	// Ranks return the cores that they may use.
	programs["cores"] = func() {
		status, err := os.ReadFile("/proc/self/status")
		must(err)
		must(launch.Return(coresOf(string(status))))
	}
	// Ranks add their numbers.
	programs["sum"] = inGroup(func(rank int) error {
		sum := []int64{int64(rank)}
		if err := dist.AllReduce(sum, dist.Sum); err != nil {
			return err
		}
		return launch.Return(sum[0])
	})
	// Ranks count three barriers, and end when a file has something.
	programs["count"] = inGroup(func(int) error {
		err := errors.Join(dist.Barrier(), dist.Barrier(), dist.Barrier())
		for b := []byte(nil); len(b) == 0 && err == nil; time.Sleep(time.Millisecond) {
			b, err = os.ReadFile(os.Getenv("GO_ON"))
		}
		return err
	})
	// Rank 1 of a group fails in several ways, and the others wait for it.
	for name, fail := range map[string]func() error{
		"kill":  func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) },
		"quit":  func() error { os.Exit(7); return nil },
		"error": func() error { return fmt.Errorf("load batch: %w", errShard) },
		"panic": func() error { panic("out of luck") },
	} {
		programs[name] = inGroup(func(rank int) error {
			if err := dist.Barrier(); err != nil {
				return err
			}
			if rank == 1 {
				return fail()
			}
			return dist.Barrier()
		})
	}
}

// leavesNothing checks that no process of a test remains, and neither shared memory nor reports of
// the job whose ranks have written its name to out.
func leavesNothing(t *testing.T, value string, out *screen.Screen) {
	t.Helper()
	require.Eventually(t, func() bool { return len(marked(t, value)) == 0 }, 30*time.Second, 5*time.Millisecond)
	_, after, found := strings.Cut(out.String(), "job /goccl-")
	require.True(t, found, out)
	key, _, _ := strings.Cut(after, "\n")
	for _, dir := range []string{"/dev/shm", os.TempDir()} {
		require.Eventually(t, func() bool {
			files, err := filepath.Glob(dir + "/*goccl-" + key + "*")
			return err == nil && len(files) == 0
		}, 30*time.Second, 5*time.Millisecond)
	}
}

// marked returns the processes that have the mark, and still have an environment.
func marked(t *testing.T, value string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range files {
		if environment, err := os.ReadFile(file); err == nil && bytes.Contains(environment, []byte(mark+"="+value+"\x00")) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// Metrics show what ranks count, while they run and afterwards.
func TestMetrics(t *testing.T) {
	var m launch.Metrics
	job, _ := testJob(t, 2, "count")
	job.Metrics = &m
	shown := func() string {
		var b strings.Builder
		require.NoError(t, m.Write(&b))
		return b.String()
	}
	require.NotContains(t, shown(), "goccl_calls_total")
	in, err := os.OpenFile(filepath.Join(t.TempDir(), "go"), os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	job.Env = append(job.Env, "GO_ON="+in.Name())
	ended := make(chan error)
	go func() {
		_, err := job.Run(context.Background())
		ended <- err
	}()
	want := `goccl_calls_total{rank="1",group="default",collective="barrier",node="0"} 3` + "\n"
	require.Eventually(t, func() bool { return strings.Contains(shown(), want) }, 60*time.Second, 5*time.Millisecond)
	_, err = in.WriteString("x")
	require.NoError(t, err)
	require.NoError(t, <-ended)
	require.Contains(t, shown(), want)
}

// Ranks of this program join, and their values and transports come back.
func TestGroup(t *testing.T) {
	job, value := testJob(t, 3, "sum")
	out := screen.New()
	job.Stdout = out
	ranks, err := job.Run(context.Background())
	require.NoError(t, err)
	for _, r := range ranks {
		require.Equal(t, "shm", r.Transport)
		require.Equal(t, "3", string(r.Value))
		require.Positive(t, r.Wall)
	}
	leavesNothing(t, value, out)
}

// Whichever way a rank of a group fails, the error names it and the cause, and nothing remains.
func TestFailures(t *testing.T) {
	for name, want := range map[string]string{
		"kill":  `SIGKILL \(killed\)$`,
		"quit":  `exit status 7$`,
		"error": `exit status 1: load batch: no such shard$`,
		"panic": `exit status 1: panic: out of luck$`,
	} {
		t.Run(name, func(t *testing.T) {
			job, value := testJob(t, 3, name)
			out := screen.New()
			job.Stdout = out
			failed := failure(t, context.Background(), job)
			require.Equal(t, 1, failed.Rank)
			require.Regexp(t, `^launch: rank 1 \(pid \d+\) was the first to fail, after `, failed.Error())
			require.Regexp(t, want, failed.Ranks[1].Err.Error())
			_, cause, _ := strings.Cut(failed.Ranks[1].Err.Error(), ": ")
			require.Contains(t, failed.Error(), cause)
			for _, r := range failed.Ranks {
				require.Equal(t, "shm", r.Transport)
			}
			leavesNothing(t, value, out)
		})
	}
}

// Ranks are pinned to cores of their own, or not, or the job does not start.
func TestPinning(t *testing.T) {
	job, _ := testJob(t, 60000, "echo")
	job.Pin = launch.PinOn
	ranks, err := job.Run(context.Background())
	require.ErrorContains(t, err, "launch: 60000 ranks cannot have a core each: ")
	require.ErrorContains(t, err, ": start fewer ranks, or let them share cores")
	require.Nil(t, ranks)

	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	all := coresOf(string(status))
	job, _ = testJob(t, 2, "cores")
	ranks, err = job.Run(context.Background())
	require.NoError(t, err)
	for _, r := range ranks {
		require.Equal(t, strconv.Quote(all), string(r.Value))
	}

	cores.LockPrefix = fmt.Sprintf("goccl-test-%d", os.Getpid()) // no job of this machine holds cores
	m, err := cores.Survey()
	require.NoError(t, err)
	if m.Ranks() < len(m.Free) {
		t.Skip("the quota of CPU time is less than the cores, or these differ; TestShares of internal/cores has those")
	}
	job.Pin, job.Ranks = launch.PinOn, len(m.Free)
	ranks, err = job.Run(context.Background())
	require.NoError(t, err)
	for i, r := range ranks {
		require.Equal(t, strconv.Quote(cores.Format(m.Free[i].CPUs)), string(r.Value))
	}
}

// coresOf returns the cores in a process's status.
func coresOf(status string) string {
	_, after, _ := strings.Cut(status, "Cpus_allowed_list:")
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}

// The flight recorders of a job that fails are written, also that of a rank that was killed.
func TestFlight(t *testing.T) {
	dir := t.TempDir()
	job, _ := testJob(t, 3, "kill")
	job.Env = append(job.Env, "GOCCL_FLIGHT="+dir)
	failure(t, context.Background(), job)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	whole := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var document struct{ Ranks []struct{ Rank int } }
		require.NoError(t, json.Unmarshal(text, &document))
		whole = whole || len(document.Ranks) == 3
	}
	require.True(t, whole, "%v", files)
}

// If the program is killed, its ranks are killed, too.
func TestKilledProgram(t *testing.T) {
	value := fmt.Sprintf("%d.%s", os.Getpid(), t.Name())
	c := self("family")
	c.Env = append(c.Env, mark+"="+value)
	out := screen.New()
	c.Stdout = out
	require.NoError(t, c.Start())
	out.Await(t, "job /goccl-", 2)
	out.Await(t, "up\n", 2)
	require.Len(t, marked(t, value), 1+1+2, "the program, its keeper and its ranks")
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	leavesNothing(t, value, out)
}
