package exporter

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/atomicfile"
)

// Exporter shows metrics until it is closed.
type Exporter struct {
	// Address is where it listens, such as 127.0.0.1:9400, or "" if it writes a file.
	Address string
	close   func() error
}

// Close ends the exporter and removes its socket. A file gets the metrics as they are now.
func (e *Exporter) Close() error { return e.close() }

// Write writes the metrics of a job as they are now. run tells jobs apart that share a reader, or
// is "".
type Write func(w io.Writer, run string) error

// Start starts an exporter at an address: unix:/PATH, file:/DIR/NAME.prom, or HOST:PORT with a host
// that is loopback. warn is called when a file cannot be replaced any more.
func Start(address string, write Write, warn func(error)) (*Exporter, error) {
	if path, ok := strings.CutPrefix(address, "file:"); ok {
		return startFile(path, write, warn)
	}
	path, isUnix := strings.CutPrefix(address, "unix:")
	var l net.Listener
	var err error

	if isUnix {
		l, err = listenUnix(path)
	} else {
		l, err = listenLoopback(address)
	}
	if err != nil {
		return nil, err
	}
	return &Exporter{Address: l.Addr().String(), close: serve(l, write)}, nil
}

const wanted = "want unix:/PATH, file:/DIR/NAME.prom, or a loopback address with a port, such as 127.0.0.1:9400"

// listenLoopback listens at a loopback address. Others would show the job to whoever reaches the
// host, without asking who reads.
func listenLoopback(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, wanted)
	}
	if host == "localhost" {
		host = "127.0.0.1" // whatever a resolver says
	}
	if !net.ParseIP(host).IsLoopback() {
		return nil, fmt.Errorf("%q is no loopback address, and there whoever reaches this host could read: %s; a proxy can pass it on", host, wanted)
	}

	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: name another port, or 0 for any that is free", err)
	}
	return l, err
}

// socketPathBytes is the longest path of a Unix socket on Linux; elsewhere it is a few bytes less.
const socketPathBytes = 107

// listenUnix listens at a Unix socket. It replaces one at which nobody listens: a launcher that was
// killed leaves it, and its job may be started again.
func listenUnix(path string) (net.Listener, error) {
	switch {
	case path == "":
		return nil, errors.New("the path is empty: " + wanted)
	case len(path) > socketPathBytes:
		return nil, fmt.Errorf("the path has %d bytes, and that of a socket at most %d: name a shorter one, such as unix:/run/goccl.sock", len(path), socketPathBytes)
	}

	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		info, failed := os.Lstat(path)
		if failed != nil || info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s exists and is no socket: name another path, or remove it", path)
		}
		if c, failed := net.DialTimeout("unix", path, time.Second); !errors.Is(failed, syscall.ECONNREFUSED) {
			if failed == nil {
				_ = c.Close() // nothing was sent
			}
			return nil, fmt.Errorf("another process listens at %s: name another path", path)
		}
		if err = os.Remove(path); err == nil {
			l, err = net.Listen("unix", path)
		}
	}
	return l, withDirectory(err, path)
}

// withDirectory adds to an error that the directory of a file is missing.
func withDirectory(err error, path string) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: make the directory %s", err, filepath.Dir(path))
	}
	return err
}

// filePause is the time between two writes of a file. Prometheus reads every 15 s or more.
var filePause = 5 * time.Second

// startFile writes to a file for the textfile collector of node_exporter. The name of the file
// tells the job from others there.
func startFile(path string, write Write, warn func(error)) (*Exporter, error) {
	run, isRead := strings.CutSuffix(filepath.Base(path), ".prom")
	if !isRead || run == "" {
		return nil, fmt.Errorf("file:%s: node_exporter reads only files whose names end in .prom: name it file:/DIR/NAME.prom", path)
	}
	replace := func() error {
		return atomicfile.Replace(path, false, func(f *os.File) error { return write(f, run) })
	}
	if err := replace(); err != nil {
		return nil, withDirectory(err, path)
	}

	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticks := time.NewTicker(filePause)
		defer ticks.Stop()

		for isWell := true; ; {
			select {
			case <-ticks.C:
				err := replace()
				if err != nil && isWell {
					warn(err)
				}
				isWell = err == nil

			case <-end:
				return
			}
		}
	}()

	return &Exporter{close: func() error {
		close(end)
		<-ended
		return replace()
	}}, nil
}
