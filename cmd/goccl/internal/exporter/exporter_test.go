package exporter

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// text writes a metric of one run.
func text(w io.Writer, run string) error {
	_, err := fmt.Fprintf(w, "run %q\n", run)
	return err
}

// get requests a path of an exporter.
func get(e *Exporter, path string) (status int, body, kind string, err error) {
	network := "tcp"
	if strings.Contains(e.Address, "/") {
		network = "unix"
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, e.Address)
	}}
	r, err := (&http.Client{Transport: transport}).Get("http://job" + path)
	if err != nil {
		return 0, "", "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, string(b), r.Header.Get("Content-Type"), err
}

func TestServe(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "[::1]:0", "127.1.2.3:0", "unix:" + socket} {
		t.Run(address, func(t *testing.T) {
			e, err := Start(address, text, nil)
			if strings.HasPrefix(address, "[") && err != nil {
				t.Skipf("no IPv6 here: %v", err)
			}
			require.NoError(t, err)
			status, body, kind, err := get(e, "/metrics")
			require.NoError(t, err)
			require.Equal(t, []any{200, "run \"\"\n", "text/plain; version=0.0.4; charset=utf-8"}, []any{status, body, kind})
			status, _, _, err = get(e, "/")
			require.NoError(t, err)
			require.Equal(t, 404, status)
			require.NoError(t, e.Close())
			_, _, _, err = get(e, "/metrics")
			require.Error(t, err)
		})
	}
	require.NoFileExists(t, socket)
}

// What cannot work is refused with what to do.
func TestRefusedAddresses(t *testing.T) {
	dir := t.TempDir()
	busy, err := Start("127.0.0.1:0", text, nil)
	require.NoError(t, err)
	defer busy.Close()
	socket := filepath.Join(dir, "busy")
	other, err := Start("unix:"+socket, text, nil)
	require.NoError(t, err)
	defer other.Close()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	long := "/" + strings.Repeat("x", 107)

	for address, wants := range map[string]string{
		"":                               "missing port in address: want unix:/PATH",
		"9400":                           "missing port in address: want unix:/PATH",
		"/run/job.sock":                  "missing port in address: want unix:/PATH",
		":9400":                          `"" is no loopback address, and there whoever reaches this host could read: want unix:/PATH`,
		"0.0.0.0:9400":                   `"0.0.0.0" is no loopback address`,
		"[::]:9400":                      `"::" is no loopback address`,
		"192.0.2.1:9400":                 `"192.0.2.1" is no loopback address`,
		"node-a:9400":                    `"node-a" is no loopback address`,
		"127.0.0.1.example:9400":         `"127.0.0.1.example" is no loopback address`,
		"127.0.0.1:70000":                "invalid port",
		busy.Address:                     "address already in use: name another port, or 0 for any that is free",
		"unix:":                          "the path is empty: want unix:/PATH",
		"unix:" + long:                   "the path has 108 bytes, and that of a socket at most 107: name a shorter one",
		"unix:" + socket:                 "another process listens at " + socket + ": name another path",
		"unix:" + file:                   file + " exists and is no socket: name another path, or remove it",
		"unix:" + dir:                    dir + " exists and is no socket",
		"unix:" + dir + "/none/s":        "no such file or directory: make the directory " + dir + "/none",
		"file:":                          "node_exporter reads only files whose names end in .prom: name it file:/DIR/NAME.prom",
		"file:" + dir + "/metrics.txt":   "name it file:/DIR/NAME.prom",
		"file:" + dir + "/.prom":         "name it file:/DIR/NAME.prom",
		"file:" + dir + "/none/job.prom": "no such file or directory: make the directory " + dir + "/none",
		"file:" + file + "/metrics.prom": "not a directory",
	} {
		_, err := Start(address, text, nil)
		require.ErrorContains(t, err, wants, address)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2, "nothing else was made")
}

// A socket that a dead process has left is replaced.
func TestDeadSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
	e, err := Start("unix:"+path, text, nil)
	require.NoError(t, err)
	_, body, _, err := get(e, "/metrics")
	require.NoError(t, err)
	require.Equal(t, "run \"\"\n", body)
	require.NoError(t, e.Close())
	require.NoFileExists(t, path)
}

// Readers that connect and say nothing, or that stop in the middle, hold nobody, and are not more
// than so many.
func TestStalledReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	e, err := Start("unix:"+path, text, nil)
	require.NoError(t, err)
	var stalled []net.Conn
	for i := range readers {
		c, err := net.Dial("unix", path)
		require.NoError(t, err)
		stalled = append(stalled, c)
		if i%2 == 0 {
			_, err = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost:")
			require.NoError(t, err)
		}
	}
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	require.True(t, err == io.EOF || isReset(err), "%v", err)

	require.NoError(t, stalled[0].Close())
	require.Eventually(t, func() bool { status, _, _, err := get(e, "/metrics"); return err == nil && status == 200 }, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, e.Close())
	for _, c := range stalled[1:] {
		_, err := io.Copy(io.Discard, c)
		require.True(t, err == nil || isReset(err), "%v", err)
	}
	require.NoFileExists(t, path)
}

func isReset(err error) bool { return strings.Contains(err.Error(), syscall.ECONNRESET.Error()) }

// A file has the metrics from the start to the end, with its name, and nothing else remains.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "train.prom")
	var isLast atomic.Bool
	e, err := Start("file:"+path, func(w io.Writer, run string) error {
		_, err := fmt.Fprint(w, run, " ", isLast.Load())
		return err
	}, nil)
	require.NoError(t, err)
	require.Empty(t, e.Address)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "train false", string(b))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o400)

	isLast.Store(true)
	require.NoError(t, e.Close())
	b, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "train true", string(b))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// A file that cannot be written any more is a warning, once, and an error of Close.
func TestFileVanishes(t *testing.T) {
	defer func(pause time.Duration) { filePause = pause }(filePause)
	filePause = time.Millisecond
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.Mkdir(dir, 0o700))
	tries, warned := make(chan bool, 1), make(chan error, 9)
	e, err := Start("file:"+dir+"/train.prom", func(w io.Writer, run string) error {
		select {
		case tries <- true:
		default:
		}
		return text(w, run)
	}, func(err error) { warned <- err })
	require.NoError(t, err)
	for i := range 2 { // it vanishes, and again
		require.NoError(t, os.Rename(dir, fmt.Sprint(dir, i)))
		require.ErrorIs(t, <-warned, os.ErrNotExist)
		require.NoError(t, os.Mkdir(dir, 0o700))
		for len(tries) > 0 {
			<-tries
		}
		<-tries
		<-tries // so the file was written
	}
	require.NoError(t, os.Rename(dir, dir+"2"))
	require.ErrorIs(t, <-warned, os.ErrNotExist)
	require.ErrorIs(t, e.Close(), os.ErrNotExist)
	require.Empty(t, warned)
}
