package mesh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/transport"
)

// Mesh is the connections of a rank to all others.
type Mesh struct {
	Rank, Size int
	// Node is, by rank, the number of its node: ranks of one node can share memory. Nodes count from 0
	// in the order of their lowest ranks.
	Node []int
	// Hosts are the names of the ranks' hosts.
	Hosts []string
	// Conns are the connections to each peer, by peer and lane; nil for this rank. Ranks of one node
	// have a single lane.
	Conns [][]net.Conn
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
	Rendezvous Rendezvous
	Secret     string // known to the job's ranks only; "": there is none
	IsLoopback bool   // the ranks listen at addresses that only processes of this host reach
	// Interface is the name of a network interface, or an address of this host, at which this rank
	// listens and from which it dials; "" leaves that to the routes.
	Interface string
	// Memory is equal on ranks that can share memory.
	Memory string
	// LocalRank is this rank's number among the LocalSize ranks of its node, which are consecutive.
	// They tell the host of a rank that has not come; LocalSize is 0 if they are not known.
	LocalRank, LocalSize int
	Lanes                int // connections of each pair of ranks on two nodes
	// Facts are what all ranks must have in common, such as the build of the program.
	Facts []Fact
}

// Fact is something that all ranks must have in common.
type Fact struct {
	Name  string // a noun, as in "another build"
	Value string
}

// Purposes of connections.
const (
	purposeJoin = 1 // to rank 0
	purposeLink = 2 // a lane
)

// joining is a rank that joins.
type joining struct {
	*Config
	begin    time.Time
	host     string
	from     net.IP // from which it dials, or nil
	listener *handshake.Listener
	root     string // the address of rank 0
	joins    chan net.Conn
	ended    chan struct{} // closed when Connect returns

	mu      sync.Mutex
	links   []link // that were dialed by others and not taken yet
	changed chan struct{}
}

// link is a connection that another rank has dialed.
type link struct {
	net.Conn
	opening handshake.Opening
}

// Connect connects this rank with all others. It returns when all are connected, or fails on all,
// at the latest when ctx ends.
func Connect(ctx context.Context, c *Config) (*Mesh, error) {
	j := &joining{
		Config: c, begin: time.Now(), joins: make(chan net.Conn), ended: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	j.host, _ = os.Hostname() // "" is a name as well
	m, err := j.connect(ctx)
	close(j.ended)
	if j.listener != nil {
		err = errors.Join(err, j.listener.Close())
	}
	for _, l := range j.links {
		_ = l.Close() // of a rank that has failed
	}

	if err != nil {
		return nil, fmt.Errorf("rank %d of %d, on host %s: %w", c.Rank, c.Size, j.host, err)
	}
	return m, nil
}

func (j *joining) connect(ctx context.Context) (m *Mesh, err error) {
	if j.Interface != "" && !j.IsLoopback {
		if j.from, err = interfaceAddress(j.Interface); err != nil {
			return nil, err
		}
	}
	if j.Rank == 0 {
		return j.lead(ctx)
	}
	return j.follow(ctx)
}

// accept takes a connection that has made its handshake.
func (j *joining) accept(conn net.Conn, o handshake.Opening) {
	switch {
	case o.To != uint32(j.Rank):
		_ = conn.Close() // it looks for another rank that had this address
	case o.Purpose == purposeLink:
		j.addLink(link{conn, o})
	case o.Purpose == purposeJoin && j.Rank == 0:
		go j.handOver(conn)
	default: // a launcher
		_ = conn.Close()
	}
}

// handOver gives the connection of a rank that wants to join to the goroutine of rank 0.
func (j *joining) handOver(conn net.Conn) {
	select {
	case j.joins <- conn:
	case <-j.ended:
		_ = conn.Close()
	}
}

// newSession names an attempt to connect the ranks.
func newSession() (s [16]byte) {
	_, _ = rand.Read(s[:]) // never fails
	return s
}

// listenAddress is where this rank listens, at any port.
func (j *joining) listenAddress(port int) string {
	switch {
	case j.from != nil && !j.IsLoopback:
		return net.JoinHostPort(j.from.String(), strconv.Itoa(port))
	case j.IsLoopback:
		return net.JoinHostPort(loopback, strconv.Itoa(port))
	}
	return ":" + strconv.Itoa(port)
}

// loopback is where a job listens that is on one host, or has no secret.
const loopback = "127.0.0.1"

// endOf returns why ctx has ended.
func (j *joining) endOf(ctx context.Context) error {
	err := transport.ContextError(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return &transport.TimeoutError{By: j.Rank, After: time.Since(j.begin).Round(time.Millisecond)}
	}
	return err
}
