package tool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
)

// follower is a launcher whose ranks are followAsRank's.
type follower struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stderr *bytes.Buffer
	output io.Reader // of startFollowerWith
}

// startFollower starts goccl run with these flags.
func startFollower(t *testing.T, flags ...string) follower {
	t.Helper()
	return startFollowerWith(t, func(*exec.Cmd) io.Reader { return nil }, flags...)
}

// startFollowerWith is startFollower of a command that prepare may change before.
func startFollowerWith(t *testing.T, prepare func(*exec.Cmd) io.Reader, flags ...string) follower {
	t.Helper()
	t.Setenv(asFollower, "1")
	t.Setenv("GOCCL_TIMEOUT", "none")
	args := append([]string{"run", "--pin=off", "--env", asProgram + "=", "--env", asFollower}, flags...)
	c, stderr := program(t, append(args, os.Args[0])...)
	stdin, err := c.StdinPipe()
	require.NoError(t, err)
	output := prepare(c)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(stderr)
		}
	})
	return follower{c, stdin, stderr, output}
}

// scraped returns the metrics that are served at a Unix socket, or "".
func scraped(socket string) string {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	r, err := client.Get("http://job/metrics")
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return string(text)
}

// shows waits until metrics have all of these lines.
func shows(t *testing.T, read func() string, lines ...string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Log(last)
		}
	}()
	for _, line := range lines {
		require.Eventually(t, func() bool {
			last = "\n" + read()
			return strings.Contains(last, "\n"+line)
		}, 60*time.Second, 10*time.Millisecond, "%s", line)
	}
}

// socketPath returns a path that is short enough.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// What ranks have counted is served while they run.
func TestMetricsWhileRanksRun(t *testing.T) {
	socket := socketPath(t)
	job := startFollower(t, "-n", "3", "--metrics", "unix:"+socket)
	read := func() string { return scraped(socket) }
	shows(t, read, `goccl_rank_info{rank="2",pid="`, `goccl_restarts_total{node="0"} 0`)
	calls := func(n string) string {
		return `goccl_calls_total{rank="1",group="default",collective="broadcast",node="0"} ` + n + "\n"
	}
	_, err := job.stdin.Write([]byte("x"))
	require.NoError(t, err)
	shows(t, read, calls("1"))
	_, err = job.stdin.Write([]byte("xy"))
	require.NoError(t, err)
	shows(t, read, calls("3"), `goccl_call_bytes_total{rank="1",group="default",collective="broadcast",node="0"} 3`)
	require.NoError(t, job.stdin.Close())
	require.NoError(t, job.Wait())
	require.NoFileExists(t, socket)
	require.Empty(t, job.stderr.String())
}

// A file has the last counts when the job has ended, and a signal removes a socket.
func TestMetricsAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train.prom")
	job := startFollower(t, "-n", "2", "--metrics", "file:"+path)
	_, err := job.stdin.Write([]byte("xyz"))
	require.NoError(t, err)
	read := func() string { b, _ := os.ReadFile(path); return string(b) }
	shows(t, read, `goccl_rank_info{rank="1",`)
	require.NoError(t, job.stdin.Close())
	require.NoError(t, job.Wait())
	require.Contains(t, read(), `goccl_calls_total{rank="1",group="default",collective="broadcast",node="0",run="train"} 4`+"\n")

	socket := socketPath(t)
	job = startFollower(t, "-n", "2", "--metrics", "unix:"+socket)
	shows(t, func() string { return scraped(socket) }, `goccl_rank_info{rank="1",`)
	stalled, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer stalled.Close()
	require.NoError(t, job.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 128+int(syscall.SIGTERM), ended(t, job.Wait()))
	require.NoFileExists(t, socket)
}

// A restart is counted, and the ranks that it has started are shown.
func TestMetricsOfRestarts(t *testing.T) {
	socket := socketPath(t)
	job := startFollower(t, "-n", "2", "--max-restarts", "1", "--metrics", "unix:"+socket)
	read := func() string { return scraped(socket) }
	shows(t, read, `goccl_rank_info{rank="1",`)
	_, after, _ := strings.Cut(read(), `goccl_rank_info{rank="1",pid="`)
	pid, _, _ := strings.Cut(after, `"`)
	require.NoError(t, exec.Command("/bin/sh", "-c", "kill -9 "+pid).Run())
	shows(t, read, `goccl_restarts_total{node="0"} 1`)
	require.Eventually(t, func() bool {
		now := read()
		return strings.Contains(now, `goccl_rank_info{rank="1",`) && !strings.Contains(now, `pid="`+pid+`"`)
	}, 60*time.Second, 10*time.Millisecond)
	require.NoError(t, job.stdin.Close())
	require.NoError(t, job.Wait())
}

// Each node shows its own ranks, by their numbers in the job, also if they are children of a shell,
// or if one is alone there.
func TestMetricsOfNodes(t *testing.T) {
	endpoint := freeEndpoint(t)
	t.Setenv("GOCCL_SECRET", "none")
	var sockets [2]string
	var jobs [2]follower
	for i, node := range []string{"0", "1"} {
		sockets[i] = socketPath(t)
		jobs[i] = startFollower(t, "--nnodes", "2", "--node-rank", node, "--rdzv-endpoint", endpoint, "-n", strconv.Itoa(i+1), "--metrics", "unix:"+sockets[i], "/bin/sh", "-c", `"$0" "$@"; exit $?`)
	}
	_, err := jobs[0].stdin.Write([]byte("x"))
	require.NoError(t, err)
	for i, ranks := range []string{"0", "12"} {
		read := func() string { return scraped(sockets[i]) }
		for _, rank := range ranks {
			shows(t, read, `goccl_calls_total{rank="`+string(rank)+`",group="default",collective="broadcast",node="`+string(rune('0'+i))+`"} 1`)
		}
		require.Equal(t, i+1, strings.Count(read(), "\ngoccl_rank_info{"))
	}

	running, err := inspect.Jobs()
	require.NoError(t, err)
	here := slices.IndexFunc(running, func(j inspect.Listed) bool {
		return j.Numbers != nil && strings.Contains(scraped(sockets[1]), fmt.Sprintf(`goccl_rank_info{rank="1",pid="%d"`, j.PIDs[0]))
	})
	require.GreaterOrEqual(t, here, 0, "%+v", running)
	require.Equal(t, []int{1, 2}, running[here].Numbers)
	text, status := inspected(t, "--health", "--limit", "1h", running[here].Name)
	require.Zero(t, status, "%s", text)
	require.Contains(t, text, ", 2 ranks\n  rank 1: call 2, broadcast")
	require.Contains(t, text, "\n  rank 2: call 2, broadcast")
	require.NoError(t, jobs[0].stdin.Close())
	for i := range jobs {
		require.NoError(t, jobs[i].Wait())
		require.NoFileExists(t, sockets[i])
	}
}

// A process writes the metrics of its own rank, and of no other one that it could read.
func TestMetricsOfOneProcess(t *testing.T) {
	t.Setenv("GOCCL_METRICS", "true")
	t.Setenv(asFollower, "1")
	c, stderr := program(t, "run", "--pin=off", "-n", "2", "--env", asProgram+"=", "--env", asFollower, os.Args[0])
	out, err := c.Output()
	require.NoError(t, err, "%s", stderr)
	for _, rank := range []string{"0", "1"} {
		require.Contains(t, string(out), "["+rank+`] goccl_calls_total{rank="`+rank+`",group="default",collective="broadcast"} 1`+"\n")
	}
	require.Equal(t, 2, strings.Count(string(out), "] goccl_rank_info{"))
}

// What cannot work is refused before anything starts.
func TestMetricsUsage(t *testing.T) {
	dir := t.TempDir()
	for address, want := range map[string]string{
		"0.0.0.0:9400":                 `--metrics 0.0.0.0:9400: "0.0.0.0" is no loopback address, and there whoever reaches this host could read`,
		"unix:" + dir:                  "--metrics unix:" + dir + ": " + dir + " exists and is no socket",
		"file:" + dir + "/none/a.prom": "no such file or directory: make the directory " + dir + "/none",
	} {
		require.Contains(t, failed(t, 2, "run", "-n", "1", "--metrics", address, "/bin/sh", "-c", "echo started"), want)
	}
}
