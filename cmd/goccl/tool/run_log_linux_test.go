//go:build unix

package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// logLine is a line of --log-format json.
type logLine struct {
	Time                time.Time
	Level, Msg, Job     string
	Attempt, Node, Rank *int
	Seconds             *float64
	Restarts, Status    *int
}

// logged runs a job with its log as JSON, and returns that, what else stood on standard error, and
// the exit status.
func logged(t *testing.T, args ...string) (log []logLine, others []string, status int) {
	t.Helper()
	c, stderr := program(t, append([]string{"run", "--log-format", "json"}, args...)...)
	status = ended(t, c.Run())
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "{") {
			others = append(others, line)
			continue
		}
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		var l logLine
		require.NoError(t, d.Decode(&l), line)
		require.WithinDuration(t, time.Now(), l.Time, time.Hour)
		log = append(log, l)
	}
	return log, others, status
}

// What goccl run itself says has a line each, with what it is about; what ranks say stays as it is.
func TestRunLog(t *testing.T) {
	log, others, status := logged(t, "-n", "2", "--max-restarts", "1", "/bin/sh", "-c",
		`test $RANK = 0 && exec sleep 1000; echo "attempt $GOCCL_RESTART" >&2; exit 42`)
	require.Equal(t, 42, status)
	require.Equal(t, []string{"[1] attempt 0\n", "[1] attempt 1\n"}, others)
	require.Len(t, log, 4)
	job := log[0].Job
	require.Regexp(t, "^goccl-[0-9a-f]{16}$", job)
	zero, first, exit := 0, 1, 42
	for i, want := range []logLine{
		{Level: "WARN", Msg: "(?s)^rank 1 .* was the first to fail, .*\n  ranks? 0: ", Job: job, Attempt: &zero, Rank: &first},
		{Level: "INFO", Msg: "^restart 1 in ", Job: job, Attempt: &zero},
		{Level: "ERROR", Msg: "(?s)^rank 1 .* was the first to fail, after .* of restart 1: exit status 42\n", Job: job + ".1", Attempt: &first, Rank: &first},
		{Level: "INFO", Msg: "^the job ran for .*s, with 1 restart: status 42$", Job: job + ".1", Attempt: &first, Restarts: &first, Status: &exit, Seconds: log[3].Seconds},
	} {
		require.Regexp(t, want.Msg, log[i].Msg)
		want.Msg, want.Time = log[i].Msg, log[i].Time
		require.Equal(t, want, log[i])
	}
	require.Positive(t, *log[3].Seconds)
}

// A job that cannot start has one line, and mistakes in the command line stay text.
func TestRunLogOfNothing(t *testing.T) {
	log, others, status := logged(t, "-n", "2", "no-such-program")
	require.Equal(t, 127, status)
	require.Empty(t, others)
	require.Len(t, log, 1)
	require.Contains(t, log[0].Msg, "no-such-program: there is no such program")
	require.Equal(t, logLine{Time: log[0].Time, Level: "ERROR", Msg: log[0].Msg}, log[0])
	_, others, status = logged(t, "-n", "2")
	require.Equal(t, 2, status)
	require.Equal(t, []string{"goccl: error: run: the program is missing, as in goccl run -n 2 ./train\n"}, others)
	require.Contains(t, failed(t, 2, "run", "--log-format", "xml", "-n", "2", "true"), `--log-format must be one of "text","json" but got "xml"`)
	require.Contains(t, failed(t, 2, "run", "--rotate", "1KiB", "-n", "2", "true"), "--rotate: there are no files without --output or --tee")
}

// A launcher of several nodes names its node.
func TestRunLogOfNodes(t *testing.T) {
	endpoint := freeEndpoint(t)
	t.Setenv("GOCCL_SECRET", "none")
	args := func(node int) []string {
		return []string{"--nnodes", "2", "--node-rank", fmt.Sprint(node), "--rdzv-endpoint", endpoint, "-n", "1", "true"}
	}
	second, _ := program(t, append([]string{"run"}, args(1)...)...)
	require.NoError(t, second.Start())
	log, others, status := logged(t, args(0)...)
	require.NoError(t, second.Wait())
	require.Zero(t, status)
	require.Empty(t, others)
	require.GreaterOrEqual(t, len(log), 2)
	for _, l := range log {
		require.Zero(t, *l.Node)
	}
	require.Equal(t, "WARN", log[0].Level)
	require.Regexp(t, "^GOCCL_SECRET=none: ", log[0].Msg)
	require.Zero(t, *log[len(log)-1].Status)
}

// Jobs that succeed and may not restart have no last line; full files of ranks are replaced.
func TestQuietAndRotate(t *testing.T) {
	dir := t.TempDir()
	c, stderr := program(t, "run", "-n", "2", "--quiet", "--tee", dir, "--rotate", "10KiB", "/bin/sh", "-c", "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo $i; done")
	stdout, err := c.Output()
	require.NoError(t, err)
	require.Empty(t, stderr.String())
	require.Equal(t, 5000, strings.Count(string(stdout), "[0] "))
	last, err := os.ReadFile(filepath.Join(dir, "rank-1.out"))
	require.NoError(t, err)
	before, err := os.ReadFile(filepath.Join(dir, "rank-1.out.1"))
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(before)+string(last), "\n4999\n5000\n"))
	require.Less(t, len(before), 10<<10+len("5000\n"), "it ends with the line that fills it")
}
