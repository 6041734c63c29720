package tool

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/test/screen"
)

var slowRuns = flag.Int("slow", 0, "so many jobs with a slow rank, and as many whose ranks are equally fast: for a machine that has nothing else to do")

// workers starts a job of four workers by goccl run with some flags. It returns the job's name and the standard error of goccl run, and end
// ends it.
func workers(t *testing.T, slow string, flags ...string) (job string, stderr *screen.Screen, end func()) {
	t.Helper()
	args := append([]string{"run", "-n", "4", "--pin=off", "--env", asProgram + "=", "--env", asWorker + "=" + slow}, flags...)
	c, _ := program(t, append(args, os.Args[0])...)
	stderr = screen.New()
	c.Stderr = stderr
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() }) // if the test fails before end
	require.Eventually(t, func() bool {
		jobs, _ := inspect.Jobs() // it may fail until the job is there
		for _, j := range jobs {
			parent := 0
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", j.PID()))
			if _, err := fmt.Sscanf(string(stat), "%d %s %s %d", new(int), new(string), new(string), &parent); err == nil && parent == c.Process.Pid {
				job = j.Name
			}
		}
		return job != ""
	}, time.Minute, 50*time.Millisecond)
	return job, stderr, func() {
		require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		_ = c.Wait() // by the signal
	}
}

// health returns what goccl inspect --health says of a job.
func health(t *testing.T, job string) *inspect.Health {
	t.Helper()
	text, status := inspected(t, job, "--health", "--json")
	require.Zero(t, status, text)
	var all []*inspect.Health
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	return all[0]
}

// The rank that works longest is named within a minute, by goccl inspect and by goccl run.
func TestSlowRank(t *testing.T) {
	t.Parallel()
	job, stderr, end := workers(t, "2")
	defer end()
	require.Eventually(t, func() bool { slow := health(t, job).Slow; return slow != nil && *slow == 2 }, time.Minute, 100*time.Millisecond)
	stderr.Await(t, "goccl: warning: rank 2 is slow: the others wait ", 1)
}

// Where each rank is slow in turn, none is named.
func TestNoSlowRank(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "job.prom")
	job, stderr, end := workers(t, "turns", "--metrics", "file:"+file)
	require.Eventually(t, func() bool { return health(t, job).Calls >= 20 }, time.Minute, 100*time.Millisecond)
	require.Nil(t, health(t, job).Slow)
	end()
	require.NotContains(t, stderr.String(), "slow")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, regexp.MustCompile(`(?m)^goccl_waiting_caused_ratio\{.*rank="[0-3]".*\} 0\.[01]`).FindAllString(string(text), -1), 4, "%s", text)
}

// The same of many jobs. The ranks that are equal have no turns, so that what else the machine does shows.
func TestSlowRanks(t *testing.T) {
	for n := range *slowRuns {
		for _, slow := range []string{fmt.Sprint(n % 4), "none"} {
			job, stderr, end := workers(t, slow)
			isNamed := false
			for begun := time.Now(); time.Since(begun) < 20*time.Second || slow != "none" && !isNamed && time.Since(begun) < time.Minute; time.Sleep(time.Second) {
				h := health(t, job)
				if h.Slow != nil && !isNamed {
					t.Logf("rank %d is named after %v; rank %s is slow", *h.Slow, time.Since(begun).Round(time.Second), slow)
				}
				isNamed = isNamed || h.Slow != nil
				require.True(t, h.Slow == nil || slow == fmt.Sprint(*h.Slow), "rank %s is slow: %+v", slow, h)
			}
			end()
			require.Equal(t, slow != "none", isNamed)
			require.Equal(t, slow != "none", strings.Contains(stderr.String(), "goccl: warning: rank "+slow+" is slow"), stderr)
			require.LessOrEqual(t, strings.Count(stderr.String(), " slow"), 1, stderr)
		}
	}
}
