package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/transport"
)

// Mesh is the connections of a rank to all others.
type Mesh struct {
	// PIDs are the ranks' process ids.
	PIDs []int
	// Conns are the connections to each rank; nil for this rank. There are two to one of another node
	// (by the second, hosts see whether the other one is there), else one.
	Conns [][]net.Conn

	session  [16]byte
	self     int
	attempts [][]uint32 // by which others have dialed each connection, from 1
}

// Close closes all connections.
func (m *Mesh) Close() error {
	var errs []error
	for _, lanes := range m.Conns {
		for _, conn := range lanes {
			if conn != nil {
				errs = append(errs, conn.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// Config says who this rank is, and how it finds the others.
type Config struct {
	Rank, Size int
	Job        string // names the job and the attempt; the same on all ranks
	Build      string // of the program; the same on all ranks
	Rendezvous Rendezvous
	Secret     string // known to the job's ranks only; "": there is none
	// Certificates is a directory, by whose files connections are protected; "": they are not.
	Certificates string
	IsLoopback   bool // the ranks listen at addresses that only processes of this host reach
	// Interface is the name of a network interface, or an address of this host, at which this rank
	// listens and from which it dials; "" leaves that to the routes.
	Interface string
	// Node is the number of this rank's node, as its launcher counts; -1 if it does not.
	Node int
	// LocalRank is this rank's number among the LocalSize ranks of its node, which are consecutive.
	// They tell the host of a rank that has not come; LocalSize is 0 if they are not known.
	LocalRank, LocalSize int
}

// Purposes of connections.
const (
	purposeJoin = 1 // to rank 0
	purposeLink = 2 // a lane
)

// joining is a rank that joins.
type joining struct {
	*Config
	identity handshake.Identity
	begin    time.Time
	host     string
	from     net.IP // from which it dials, or nil
	listener *handshake.Listener
	root     string    // the address of rank 0
	rootPID  int       // its process id
	links    chan link // that others have dialed, perhaps before this rank knows its session
	leader   *leader   // used by rank 0
}

// link is a connection that another rank has dialed.
type link struct {
	net.Conn
	opening handshake.Opening
}

// Connect connects this rank with all others. It returns when all are connected, or fails on all,
// at the latest when ctx ends.
func Connect(ctx context.Context, c *Config) (m *Mesh, err error) {
	j := &joining{Config: c, identity: handshake.Identity{Secret: c.Secret}, begin: time.Now(), links: make(chan link, 4*c.Size)}
	j.leader = newLeader(j)
	name, _ := os.Hostname() // it need not have one
	j.host = text.Host(name)
	if j.Interface != "" && !j.IsLoopback {
		j.from, err = interfaceAddress(j.Interface)
	}

	if err == nil {
		j.identity.Wrap, err = handshake.WrapBy(j.Certificates)
	}
	if err == nil {
		m, err = j.connect(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("rank %d of %d, on host %s: %w", c.Rank, c.Size, j.host, err)
	}
	return m, nil
}

// connect makes the connection to rank 0, and by that all others. Rank 0 has one to itself.
func (j *joining) connect(ctx context.Context) (m *Mesh, err error) {
	var root net.Conn
	var l net.Listener
	if j.Rank == 0 {
		l, err = j.Rendezvous.Listen(ctx, j.listenAddress)
		if end := j.endOf(ctx); err != nil && end != nil {
			err = fmt.Errorf("%w; %w", end, err)
		}
	} else if root, err = j.reach(ctx); err == nil {
		if l, err = net.ListenTCP("tcp", j.listenAt(root.LocalAddr().(*net.TCPAddr))); err != nil {
			_ = root.Close() // rank 0 notices
		}
	}
	if err != nil {
		return nil, err
	}

	j.leader.mu.Lock() // ranks may come at once
	j.listener = handshake.Serve(l, j.identity, j.accept)
	j.leader.mu.Unlock()
	if j.Rank == 0 {
		var served net.Conn
		served, root = net.Pipe()
		j.leader.start(served)
	}
	m, err = j.join(ctx, root)
	if j.Rank == 0 {
		j.leader.refuseLate(ctx)
	}

	_, _ = root.Close(), j.listener.Close() // nothing more is sent
	if j.Rank == 0 {
		j.leader.end()
	}
	for {
		select {
		case l := <-j.links: // of a rank that has failed, or has dialed again
			if m != nil {
				m.accept(l)
			} else {
				_ = l.Close()
			}
		default:
			return m, err
		}
	}
}

// accept takes a connection that has made its handshake.
func (j *joining) accept(conn net.Conn, o handshake.Opening) {
	switch {
	case o.To != uint32(j.Rank): // it looks for another rank that had this address
	case o.Purpose == purposeLink:
		select {
		case j.links <- link{conn, o}:
			return
		default: // those are too many
		}
	case o.Purpose == purposeJoin && j.Rank == 0 && send(conn, &message{Member: &member{PID: os.Getpid()}}) == nil:
		j.leader.start(conn)
		return
	}
	_ = conn.Close() // also that of a launcher
}

// listenAt is where a rank listens that reaches rank 0 from an address. At one of loopback only
// ranks of this host would reach it.
func (j *joining) listenAt(from *net.TCPAddr) *net.TCPAddr {
	if from.IP.IsLoopback() && !j.IsLoopback && j.from == nil {
		return &net.TCPAddr{}
	}
	return &net.TCPAddr{IP: from.IP, Zone: from.Zone}
}

// listenAddress is where rank 0 listens, at a port.
func (j *joining) listenAddress(port int) string {
	host := ""
	if j.IsLoopback {
		host = loopback
	} else if j.from != nil {
		host = j.from.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// loopback is where a job listens that is on one host, or has no secret.
const loopback = "127.0.0.1"

// endOf returns why ctx has ended, nil if it has not.
func (j *joining) endOf(ctx context.Context) error {
	err := transport.ContextError(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return &transport.TimeoutError{By: j.Rank, After: time.Since(j.begin).Round(time.Millisecond)}
	}
	return err
}
