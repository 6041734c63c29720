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

// receive counts the guests that are connected to a lock, until it is released.
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
		g.add(1)
		go func() {
			_, _ = io.Copy(io.Discard, c) // until the guest leaves, or the lock is released
			_ = c.Close()
			g.add(-1)
		}()
	}
}

// visitOne is a guest of the job that holds the lock of a name, as soon as one does, until ctx
// ends.
func visitOne(ctx context.Context, name string) {
	for ctx.Err() == nil {
		if c, err := net.Dial("unix", "@"+name); err == nil {
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			_, _ = io.Copy(io.Discard, c) // until the job ends
			stop()
			_ = c.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(visitEvery):
		}
	}
}

// visitEvery is how soon a guest notices a job that starts after it.
const visitEvery = time.Second
