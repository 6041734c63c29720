package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// reportOf runs a job with --report and returns the report, the error output and the exit status.
func reportOf(t *testing.T, args ...string) (r runReport, stderr string, status int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(file, []byte("an old report"), 0o600))
	c, errs := program(t, append([]string{"run", "--report", file}, args...)...)
	status = ended(t, c.Run())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), "%s", text)
	require.Equal(t, 1, r.Version)
	require.Equal(t, status, r.Exit)
	for i, rank := range r.Ranks {
		require.Equal(t, i, rank.Rank)
		require.Positive(t, rank.PID)
		require.Positive(t, rank.Seconds)
		require.LessOrEqual(t, rank.Seconds, r.Seconds)
		require.Equal(t, rank.Exit == nil, rank.Signal != "")
	}
	return r, errs.String(), status
}

// The report of a job has everything that the error says, of every rank.
func TestRunReport(t *testing.T) {
	joiner := []string{"-n", "3", "--env", asProgram + "=", "--env", asJoiner}
	t.Run("ok", func(t *testing.T) {
		t.Setenv(asJoiner, "well")
		r, _, status := reportOf(t, append(joiner, os.Args[0], "x")...)
		require.Zero(t, status)
		require.Equal(t, verdictOK, r.Verdict)
		require.Empty(t, r.Error)
		require.Empty(t, r.Blamed)
		require.Equal(t, []string{os.Args[0], "x"}, r.Args)
		require.Equal(t, os.Args[0], r.Program)
		require.True(t, strings.HasPrefix(r.Job, "goccl-"))
		require.False(t, r.Started.IsZero())
		require.Len(t, r.Ranks, 3)
		for _, rank := range r.Ranks {
			require.Zero(t, *rank.Exit)
			require.Equal(t, "shm", rank.Transport)
			require.Equal(t, "7", string(rank.Value))
		}
	})
	t.Run("error", func(t *testing.T) {
		t.Setenv(asJoiner, "error")
		r, stderr, status := reportOf(t, append(joiner, os.Args[0])...)
		require.Equal(t, 1, status)
		require.Equal(t, verdictFailed, r.Verdict)
		require.Equal(t, []int{1}, r.Blamed)
		require.Equal(t, "no such shard", r.Ranks[1].Cause)
		require.Regexp(t, `^rank 1 \(pid \d+\) was the first to fail, after \S+: exit status 1\n`, r.Error)
		require.Contains(t, stderr, r.Error[:strings.Index(r.Error, "\n")])
		for _, i := range []int{0, 2} { // ended by the failure or by goccl run, whichever is first
			require.True(t, r.Ranks[i].Asked == "SIGTERM" || strings.Contains(r.Ranks[i].Cause, "aborted by rank 1"), "%+v", r.Ranks[i])
		}
	})
	t.Run("killed", func(t *testing.T) {
		r, _, status := reportOf(t, "-n", "2", "/bin/sh", "-c", "if [ $RANK = 1 ]; then echo out of luck; kill -9 $$; fi; sleep 1000")
		require.Equal(t, 128+int(syscall.SIGKILL), status)
		require.Equal(t, []int{1}, r.Blamed)
		require.Equal(t, "SIGKILL", r.Ranks[1].Signal)
		require.Equal(t, "out of luck", r.Ranks[1].Cause)
		require.Empty(t, r.Ranks[1].Asked)
		require.Empty(t, r.Ranks[1].Transport)
		require.Equal(t, "SIGTERM", r.Ranks[0].Signal)
		require.Equal(t, "SIGTERM", r.Ranks[0].Asked)
	})
	t.Run("not started", func(t *testing.T) {
		r, stderr, status := reportOf(t, "-n", "60000", "--pin", "true")
		require.Equal(t, 2, status)
		require.Equal(t, verdictNotStarted, r.Verdict)
		require.Contains(t, stderr, "--pin: 60000 ranks")
		require.Contains(t, r.Error, "--pin: 60000 ranks")
		require.Empty(t, r.Ranks)
	})
}

// A report of a job that a signal ended says so.
func TestRunReportOfSignal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	c, stderr := program(t, "run", "--report", file, "-n", "2", "/bin/sh", "-c", "echo up; sleep 1000")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, text, "the job has not ended")
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 143, ended(t, c.Wait()), stderr)
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	var r runReport
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, verdictSignal, r.Verdict)
	require.Equal(t, 143, r.Exit)
	require.Empty(t, r.Blamed)
	require.Regexp(t, `^SIGTERM came after `, r.Error)
}

// The report of a job that was restarted has each start, and standard error says what failed.
func TestRunReportOfRestarts(t *testing.T) {
	r, stderr, status := reportOf(t, "-n", "2", "--max-restarts", "2", "--restart-window", "1h", "/bin/sh", "-c", "test $GOCCL_RESTART = 1 || kill -9 $$")
	require.Zero(t, status, stderr)
	require.Equal(t, verdictOK, r.Verdict)
	require.Len(t, r.Earlier, 1)
	require.Equal(t, r.Earlier[0].Job+".1", r.Job)
	require.Equal(t, verdictFailed, r.Earlier[0].Verdict)
	require.Equal(t, 137, r.Earlier[0].Exit)
	require.Len(t, r.Earlier[0].Ranks, 2)
	require.Regexp(t, `(?s)^goccl: (rank|all ranks) .*\ngoccl: restart 1 in \d+ms\ngoccl: the job ran for [0-9.]+m?s, with 1 restart: status 0\n$`, stderr)
}

// A configuration that does not load, or that ranks do not share, is not restarted.
func TestRunRestartsNoConfiguration(t *testing.T) {
	t.Setenv(asJoiner, "well")
	joiner := []string{"-n", "2", "--max-restarts", "1", "--env", asProgram + "=", "--env", asJoiner}
	for what, args := range map[string][]string{
		"no such file":             {"--env", "GOCCL_CONFIG=/no/such/file.yaml", os.Args[0]},
		"different configurations": {"/bin/sh", "-c", "export GOCCL_TIMEOUT=${RANK}1s; exec " + os.Args[0]},
	} {
		r, stderr, status := reportOf(t, append(joiner, args...)...)
		require.Equal(t, 1, status)
		require.Empty(t, r.Earlier)
		require.NotContains(t, stderr, "goccl: restart")
		require.Contains(t, stderr, what)
	}
}
