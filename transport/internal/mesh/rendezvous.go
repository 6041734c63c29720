package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/goccl/goccl/internal/launchenv"
)

// Rendezvous lets the ranks find rank 0.
type Rendezvous interface {
	// Listen makes the listener of rank 0, and lets the others find it. address returns where that
	// listens, at a port.
	Listen(ctx context.Context, address func(port int) string) (net.Listener, error)
	// Find returns where rank 0 listens, or why that is not known yet.
	Find(ctx context.Context) (string, error)
}

// fixed is a Rendezvous at an address that all ranks know.
type fixed struct {
	host string // a name or an address
	port int
}

func (f fixed) String() string { return net.JoinHostPort(f.host, strconv.Itoa(f.port)) }

// Find implements Rendezvous.
func (f fixed) Find(context.Context) (string, error) { return f.String(), nil }

// Listen implements Rendezvous.
func (f fixed) Listen(_ context.Context, address func(port int) string) (net.Listener, error) {
	at := address(f.port)
	if net.ParseIP(f.host).IsLoopback() {
		at = f.String()
	}
	l, err := net.Listen("tcp", at)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("rank 0 cannot listen at MASTER_PORT=%d: %w; another job may use it, or two processes say they are rank 0: give each job another port, and each process a rank of its own", f.port, err)
	}
	return l, err
}

// launcherFile is a Rendezvous in the directory of a launcher whose ranks are all on this node.
type launcherFile struct {
	getenv  func(string) string
	attempt int
}

// Listen implements Rendezvous.
func (f launcherFile) Listen(_ context.Context, address func(port int) string) (net.Listener, error) {
	l, err := net.Listen("tcp", address(0))
	if err != nil {
		return nil, err
	}
	if err := launchenv.SendAddress(f.getenv, f.attempt, l.Addr().String()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Find implements Rendezvous.
func (f launcherFile) Find(context.Context) (string, error) {
	address, err := launchenv.ReadAddress(f.getenv, f.attempt)
	if err == nil && address == "" {
		err = errors.New("rank 0 does not listen")
	}
	return address, err
}

// agentStore is a Rendezvous in the store of torchrun's agent, in which rank 0 writes where it
// listens.
type agentStore struct {
	fixed        // where the store is
	key   string // of the job and the attempt
	isNew bool   // in torch's newer form

	client *storeClient // once there is a connection
}

// connect connects to the store, unless it is connected.
func (s *agentStore) connect(ctx context.Context) (err error) {
	if s.client == nil {
		if s.client, err = dialStore(ctx, s.String(), s.isNew); err != nil {
			err = fmt.Errorf("the store of torchrun's agent, at MASTER_ADDR and MASTER_PORT: %w", err)
		}
	}
	return err
}

// forget closes the connection to the store.
func (s *agentStore) forget() {
	if s.client != nil {
		s.client.close()
		s.client = nil
	}
}

// Listen implements Rendezvous.
func (s *agentStore) Listen(ctx context.Context, address func(port int) string) (net.Listener, error) {
	for {
		err := s.connect(ctx)
		if err == nil {
			break
		}
		if !sleep(ctx, longestPause) {
			return nil, err
		}
	}
	defer s.forget()

	l, err := net.Listen("tcp", address(0))
	if err != nil {
		return nil, err
	}

	at := s.reachable(l.Addr().(*net.TCPAddr))
	for written := ""; ; {
		if written, err = s.client.replace(s.key, written, at); err != nil {
			return nil, errors.Join(fmt.Errorf("the store of torchrun's agent, at %v: %w", s.fixed, err), l.Close())
		}
		if written == at {
			break
		}
		// Ranks that were started again for another member count as the same restart.
		if conn, err := net.DialTimeout("tcp", written, probeTime); err == nil {
			return nil, errors.Join(fmt.Errorf("another process, at %s, says that it is rank 0 of this job: give each process a rank of its own", written), conn.Close(), l.Close())
		}
	}
	return l, nil
}

// reachable returns where others reach a listener of this host, in which the store also may be.
func (s *agentStore) reachable(listener *net.TCPAddr) string {
	host := listener.IP.String()
	if local := s.client.LocalAddr().(*net.TCPAddr).IP; listener.IP.IsUnspecified() {
		if host = local.String(); local.IsLoopback() && net.ParseIP(s.host) == nil {
			host = s.host // a name that others resolve to another address
		}
	}
	return net.JoinHostPort(host, strconv.Itoa(listener.Port))
}

// Find implements Rendezvous.
func (s *agentStore) Find(ctx context.Context) (string, error) {
	if err := s.connect(ctx); err != nil {
		return "", err
	}

	address, err := s.client.get(s.key)
	if err == nil && address == "" {
		return "", errors.New("rank 0 has not written its address to the store of torchrun's agent")
	}
	s.forget()
	if err != nil {
		err = fmt.Errorf("the store of torchrun's agent, at %v: %w", s.fixed, err)
	}
	return address, err
}
