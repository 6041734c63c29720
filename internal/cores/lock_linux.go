package cores

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// lock is an abstract Unix socket, bound to a name that no other socket of the network namespace
// has until it is closed; nil if the system does not allow it. Jobs without cores of their own
// connect to it.
type lock = *net.UnixListener

// take takes the lock of a name, or reports that another job holds it.
func take(name string) (l lock, held bool) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
	return l, errors.Is(err, syscall.EADDRINUSE)
}

func release(l lock) {
	if l != nil {
		_ = l.Close()
	}
}

// receive counts the guests that are connected to a lock, until it is released. A guest sends a
// byte; who only looks whether the lock is held does not.
func (g *guests) receive(l lock) {
	if l == nil {
		return
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		go func() {
			if n, _ := c.Read(make([]byte, 1)); n > 0 {
				g.add(1)
				_, _ = io.Copy(io.Discard, c) // until the guest leaves, or the lock is released
				g.add(-1)
			}
			_ = c.Close()
		}()
	}
}

// visit is a guest of the job that holds the core, as soon as one does, until ctx ends.
func (c Core) visit(ctx context.Context) {
	for ctx.Err() == nil {
		for k := range claims {
			if conn, counts := c.holder(k); counts && conn != nil {
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				_, _ = conn.Write([]byte{1})
				_, _ = io.Copy(io.Discard, conn) // until the job ends
				stop()
				_ = conn.Close()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(visitEvery):
		}
	}
}

// visitEvery is how soon a guest notices a job that starts after it.
const visitEvery = time.Second
