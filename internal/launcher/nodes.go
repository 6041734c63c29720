package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/text"
)

// Nodes is which part of a job a launcher has, if each of several nodes has a launcher. The zero
// value is a job of this node alone.
type Nodes struct {
	Count, Rank        int    // of nodes, and of this one, from 0
	Endpoint           string // a host of node 0 and a port, at which its launcher listens, and then rank 0
	handshake.Identity        // of the job; without a secret anybody may join
	// Timeout is how long the launchers wait for each other; 0: as long as usual.
	Timeout time.Duration
	// Invalid, unless nil, is why this node cannot start its ranks. Its launcher tells the others,
	// which would wait for it, and ends with that error.
	Invalid error
	// Note is called with for what a launcher waits, if that takes long.
	Note func(text string)
}

// Launchers are those of several nodes. Node 0 is connected with each of the others.
type Launchers struct {
	Nodes
	hosts    []string    // by node, as far as they are known
	conns    []*nodeConn // by node; of another node than 0, only that to node 0
	messages chan nodeMessage
	ended    chan struct{}     // closed when nobody reads messages any more
	values   []json.RawMessage // by node, of the exchange to come
}

// nodeConn is a connection to another launcher.
type nodeConn struct {
	net.Conn
	heard time.Time     // when the last message was handled
	skew  time.Duration // of this host's clock, and the shortest time that a message took
}

// nodeMessage is what launchers send each other.
type nodeMessage struct {
	Sent time.Time `json:"sent"` // by the clock of the sender
	// Of all commands.
	Join   *nodeJoin         `json:"join,omitempty"`   // to node 0
	Value  json.RawMessage   `json:"value,omitempty"`  // to node 0, in an exchange
	Values []json.RawMessage `json:"values,omitempty"` // from node 0, those of all nodes
	Done   *NodeError        `json:"done,omitempty"`   // to node 0: why the sender gives up; from node 0: how all end
	// Of a job.
	Ranks  []rankState      `json:"ranks,omitempty"`  // to node 0: how ranks are
	Signal syscall.Signal   `json:"signal,omitempty"` // for all ranks: to node 0 by a user, or from node 0
	Stacks []int            `json:"stacks,omitempty"` // ranks that are asked for these instead
	Watch  bool             `json:"watch,omitempty"`  // from node 0: a rank has failed, report how all are
	Ended  *launchenv.Ended `json:"ended,omitempty"`  // from node 0: the first rank that has ended well

	from *nodeConn
	err  error // the connection has ended
}

// nodeJoin is a launcher that joins.
type nodeJoin struct {
	Node, Nodes   int
	Command, Host string
}

// rankState is how a rank of another node is.
type rankState struct {
	Rank
	Number                                              int
	Started, Died                                       time.Time
	HasEnded, IsFinished, HasRest, WasAsked, WasStopped bool
	Hidden, Shortage                                    string
	Result                                              launchenv.Result
	Last, Crash                                         [2][]byte // of its output, once it has finished
}

// NodeError is how a job has ended, on other nodes than the first.
type NodeError struct {
	Status  int    // exit status for the program; 0: all is well
	Text    string // the first line of the error
	Restart bool   // a restart follows

	isLost bool // node 0 is lost, and has not said how the job has ended
}

func (e *NodeError) Error() string { return e.Text }

// ExitCode returns the exit status for the program.
func (e *NodeError) ExitCode() int { return e.Status }

// exitStatus returns the exit status for the program.
func exitStatus(err error) int {
	status := interface{ ExitCode() int }(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return status.ExitCode()
	}
	return statusFailed
}

// Limits of the connections between launchers.
const (
	purposeLauncher = 3
	noteTime        = 5 * time.Second  // after which a user is asked to start the others
	silence         = 10 * time.Second // of a host, after which it is dead
	dialPause       = 50 * time.Millisecond
)

// Connect connects the launchers of all nodes, whose users have all given the same command.
func (n Nodes) Connect(ctx context.Context, command string) (*Launchers, error) {
	l := &Launchers{
		Nodes: n, hosts: make([]string, n.Count), conns: make([]*nodeConn, n.Count), values: make([]json.RawMessage, n.Count),
		messages: make(chan nodeMessage), ended: make(chan struct{}),
	}

	connect, self := l.follow, nodeJoin{n.Rank, n.Count, command, hostname()}
	if n.Rank == 0 {
		connect, l.hosts[0] = l.gather, self.Host
	}
	if err := connect(ctx, self); err != nil {
		l.GiveUp(err)
		l.Close()
		return nil, err
	}
	return l, nil
}

// hostname returns the name of this host.
func hostname() string {
	name, _ := os.Hostname()
	return text.Host(name)
}

// IsLoopback reports whether the nodes are all this host.
func (n Nodes) IsLoopback() bool {
	host, _, _ := net.SplitHostPort(n.Endpoint)
	return launchenv.IsLoopback(host)
}

// gather waits for the launchers of all other nodes.
func (l *Launchers) gather(ctx context.Context, self nodeJoin) error {
	host, port, err := net.SplitHostPort(l.Endpoint)
	if err != nil {
		return err
	}
	if !l.IsLoopback() {
		host = "" // its name may stand for an address that only others reach
	}

	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: another job or program has it, or another launcher that is node 0; give each job a port of its own, and each launcher of a job its node's number", err)
	}
	if err != nil {
		return err
	}

	server := handshake.Serve(listener, l.Identity, func(conn net.Conn, o handshake.Opening) {
		if o.Purpose == purposeLauncher {
			go l.read(&nodeConn{Conn: conn, skew: math.MaxInt64})
		} else {
			_ = conn.Close() // a rank of an earlier job
		}
	})
	defer func() { _ = server.Close() }() // all have joined, or nobody may

	note := time.After(noteTime)
	for {
		var missing []string
		for node := 1; node < l.Count; node++ {
			if l.conns[node] == nil {
				missing = append(missing, fmt.Sprint(node))
			}
		}
		if missing == nil {
			return nil
		}

		waiting := fmt.Sprintf("waiting for node %s to connect to port %s", strings.Join(missing, ", "), port)
		if strangers := server.Strangers(); strangers != "" {
			waiting += " (" + strangers + ")"
		}

		select {
		case m := <-l.messages:
			if err := l.admit(m, self); err != nil {
				return err
			}
		case <-note:
			l.Note(waiting)
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), waiting)
		}
	}
}

// admit handles a message while launchers join.
func (l *Launchers) admit(m nodeMessage, self nodeJoin) error {
	text := ""
	switch j := m.Join; {
	case j == nil:
		return l.note(m)
	// A launcher that is not welcome.
	case j.Command != self.Command:
		text = fmt.Sprintf("node %d, host %s, runs %s, and node 0 %s", j.Node, j.Host, j.Command, self.Command)
	case j.Nodes != self.Nodes:
		text = fmt.Sprintf("node %d, host %s, was started with --nnodes %d, and node 0 with --nnodes %d", j.Node, j.Host, j.Nodes, self.Nodes)
	case j.Node < 1 || j.Node >= self.Nodes:
		text = fmt.Sprintf("host %s says it is node %d of %d: give each --node-rank once, from 0 to %d", j.Host, j.Node, self.Nodes, self.Nodes-1)
	case l.conns[j.Node] != nil:
		text = fmt.Sprintf("hosts %s and %s both say they are node %d: give each --node-rank once", l.hosts[j.Node], j.Host, j.Node)
	// The others are.
	default:
		l.conns[j.Node], l.hosts[j.Node] = m.from, j.Host
		return nil
	}

	m.from.send(nodeMessage{Done: &NodeError{Status: statusFailed, Text: text}})
	return errors.Join(errors.New(text), m.from.Close())
}

// follow connects to the launcher of node 0, which may be started later.
func (l *Launchers) follow(ctx context.Context, self nodeJoin) error {
	o := handshake.Opening{Purpose: purposeLauncher, From: uint32(self.Node)}
	note := time.After(noteTime)
	for {
		conn, err := handshake.Dial(ctx, l.Endpoint, nil, l.Identity, o)
		if err == nil {
			l.conns[0] = &nodeConn{Conn: conn}
			go l.read(l.conns[0])
			l.send(nodeMessage{Join: &self})
			return nil
		}

		waiting := fmt.Sprintf("waiting for node 0 at %s: %v", l.Endpoint, err)
		if handshake.IsFinal(err) {
			return fmt.Errorf("node 0 at %s: %w", l.Endpoint, err)
		}
		select {
		case <-note:
			l.Note(waiting)
		case <-time.After(dialPause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), waiting)
		}
	}
}

// LocalIP is the address of this host to which a node, or this one, has connected.
func (l *Launchers) LocalIP() net.IP {
	i := slices.IndexFunc(l.conns, func(c *nodeConn) bool { return c != nil })
	return l.conns[i].LocalAddr().(*net.TCPAddr).IP
}

// Exchange gives each launcher the values of all, by node.
func Exchange[T any](ctx context.Context, l *Launchers, value T) (all []T, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	values, err := l.exchange(ctx, text)
	for _, v := range values {
		var of T
		err = errors.Join(err, json.Unmarshal(v, &of))
		all = append(all, of)
	}
	return all, err
}

func (l *Launchers) exchange(ctx context.Context, value json.RawMessage) ([]json.RawMessage, error) {
	if l.Rank > 0 {
		l.send(nodeMessage{Value: value})
	} else {
		l.values[0] = value
	}

	isMissing := func(v json.RawMessage) bool { return v == nil }
	for l.Rank > 0 || slices.ContainsFunc(l.values, isMissing) {
		select {
		case m := <-l.messages:
			if l.Rank > 0 && len(m.Values) == l.Count {
				return m.Values, nil
			}
			if err := l.note(m); err != nil {
				return nil, err
			}

		case <-ctx.Done():
			return nil, fmt.Errorf("%w: waiting for the launchers of all nodes", context.Cause(ctx))
		}
	}

	values := l.values
	l.values = make([]json.RawMessage, l.Count)
	l.send(nodeMessage{Values: values})
	return values, nil
}

// note handles a message before a job, which is a value or an end.
func (l *Launchers) note(m nodeMessage) error {
	node := slices.Index(l.conns, m.from)
	switch {
	case node < 0:
		return m.from.Close() // nobody knows who it was
	case m.Value != nil:
		l.values[node] = m.Value
		return nil
	case m.Done != nil && l.Rank > 0:
		return m.Done
	}

	lost := &NodeError{Status: statusFailed, Text: l.describe(node) + ": " + m.loss()}
	if m.Done != nil {
		lost.Status = m.Done.Status
	}
	return lost
}

// describe names a node.
func (l *Launchers) describe(node int) string {
	if l.hosts[node] == "" {
		return fmt.Sprintf("node %d", node)
	}
	return fmt.Sprintf("node %d, host %s", node, l.hosts[node])
}

// loss says why a launcher gives up, or is lost.
func (m *nodeMessage) loss() string {
	switch {
	case m.Done != nil:
		return m.Done.Text
	case m.err == nil:
		return "its launcher sent a message out of order"
	case errors.Is(m.err, io.EOF) || errors.Is(m.err, syscall.ECONNRESET) || errors.Is(m.err, syscall.EPIPE):
		return "its launcher is gone"
	}
	if _, isNet := errors.AsType[*net.OpError](m.err); !isNet {
		return m.err.Error()
	}
	return fmt.Sprintf("its host has not answered for %v: it is down, or the link to it is cut", silence)
}

// read passes on the messages of another launcher, until its connection ends.
func (l *Launchers) read(conn *nodeConn) {
	tcp := handshake.Unwrap(conn.Conn)
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: silence / 5, Interval: silence / 5, Count: 4}) // asks the other kernel
	limitSilence(tcp)

	decoder := json.NewDecoder(conn)
	for {
		m := nodeMessage{from: conn}
		m.err = decoder.Decode(&m)

		select {
		case l.messages <- m:
		case <-l.ended:
			_ = conn.Close()
			return
		}
		if m.err != nil {
			return
		}
	}
}

// send sends a message to the other launchers that this one is connected with.
func (l *Launchers) send(m nodeMessage) {
	for _, conn := range l.conns {
		if conn != nil {
			conn.send(m)
		}
	}
}

// send sends a message. That the connection has ended is noticed by read.
func (c *nodeConn) send(m nodeMessage) {
	m.Sent = time.Now()
	_ = c.SetWriteDeadline(m.Sent.Add(silence))
	if err := json.NewEncoder(c).Encode(m); errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.Close()
	}
}

// GiveUp tells the other launchers why this one gives up.
func (l *Launchers) GiveUp(err error) {
	text := err.Error()
	if l.Count > 1 && l.Rank == 0 { // it is the error of all
		text = l.describe(0) + ": " + text
	}
	l.send(nodeMessage{Done: &NodeError{Status: exitStatus(err), Text: text}})
}

// Close ends the connections.
func (l *Launchers) Close() {
	close(l.ended)
	for _, conn := range l.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
}
