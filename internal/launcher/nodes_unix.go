//go:build unix

package launcher

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/handshake"
)

// A job of several nodes has a launcher on each. The one of node 0 decides: it gives each node its
// ranks, learns how all ranks end, finds who is to blame, and says to all when and how the job
// ends. The others do to their ranks what it says, and end them by themselves if they lose it.
// Every other launcher has one connection, to that of node 0; its end, by which a launcher or a
// host that dies is noticed, ends the job.

// nodeMessage is what launchers send each other; one of the fields is set, beside Sent.
type nodeMessage struct {
	Sent   time.Time   `json:"sent"`             // by the clock of the sender
	Join   *nodeJoin   `json:"join,omitempty"`   // to node 0
	Start  *nodeStart  `json:"start,omitempty"`  // from node 0, when all have joined
	Ranks  []rankState `json:"ranks,omitempty"`  // to node 0: how ranks are
	Final  bool        `json:"final,omitempty"`  // with Ranks: all have finished
	Failed string      `json:"failed,omitempty"` // why the sender gives up
	// Signal is for all ranks: to node 0 from a terminal, or from node 0. The ranks in Stacks are
	// asked for their stacks instead.
	Signal syscall.Signal `json:"signal,omitempty"`
	Stacks []int          `json:"stacks,omitempty"`
	Watch  bool           `json:"watch,omitempty"` // from node 0: a rank has failed, tell how all are
	Done   *NodeError     `json:"done,omitempty"`  // from node 0: how the job has ended

	node int   // who has sent it
	err  error // the connection has ended
}

// nodeJoin is a launcher that joins.
type nodeJoin struct {
	Node, Nodes, Ranks int
	Host               string
}

// nodeStart is a job of several nodes.
type nodeStart struct {
	Job   string // its name; what a launcher makes on its node has a name of its own
	First []int  // by node, its first rank; then the number of ranks
	Hosts []string
}

// NodeError is how a job has ended, on other nodes than the first.
type NodeError struct {
	Status int    // exit status for the program; 0: all is well
	Text   string // the first line of the error
}

func (e *NodeError) Error() string { return e.Text }

// ExitCode returns the exit status for the program.
func (e *NodeError) ExitCode() int { return e.Status }

// nodes are the launchers of a job's other nodes, as far as this one has to do with them.
type nodes struct {
	nodeStart
	secret   string     // by which ranks recognise each other; in no other process's arguments
	conns    []net.Conn // by node; of another node than 0, only that to node 0
	messages chan nodeMessage
	ended    chan struct{}    // closed when nobody reads messages any more
	stacks   []int            // ranks that node 0 wants to ask for their stacks
	ticks    <-chan time.Time // at which node 0 wants to know how the ranks are; nil: it does not
	done     *NodeError       // from node 0
}

// Limits of the connections between launchers.
const (
	purposeLauncher = 3
	joinNodesTime   = 10 * time.Minute // for all to come
	silence         = 10 * time.Second // of a host, after which it is dead
	watchPause      = 50 * time.Millisecond
)

// joinNodes meets the launchers of the other nodes. The first rank of this node, the number of
// ranks and the name of the job are known then.
func (l *launcher) joinNodes(ctx context.Context) error {
	n, host := &l.nodes, hostname()
	n.messages, n.ended, n.conns = make(chan nodeMessage), make(chan struct{}), make([]net.Conn, max(l.Nodes.Count, 1))
	n.secret, n.nodeStart = rand.Text(), nodeStart{l.name, []int{0, l.Ranks}, []string{""}}
	if l.Nodes.Count < 2 {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, joinNodesTime)
	defer cancel()
	go func() {
		select {
		case <-l.Signals:
			cancel()
		case <-ctx.Done():
		}
	}()

	n.secret = l.Nodes.Secret
	self := nodeJoin{l.Nodes.Rank, l.Nodes.Count, l.Ranks, host}
	if self.Node > 0 {
		return l.followNode0(ctx, self)
	}
	return l.gatherNodes(ctx, self)
}

// hostname returns the name of this host, which need not have one.
func hostname() string {
	name, _ := os.Hostname()
	return name
}

// gatherNodes waits for the launchers of all other nodes, and gives each its ranks.
func (l *launcher) gatherNodes(ctx context.Context, self nodeJoin) error {
	host, port, err := net.SplitHostPort(l.Nodes.Endpoint)
	if err != nil {
		return err
	}
	if host != "localhost" && !net.ParseIP(host).IsLoopback() {
		host = "" // its name may stand for an address that only others reach
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	conns := make(chan net.Conn)

	server := handshake.Serve(listener, l.nodes.secret, func(conn net.Conn, o handshake.Opening) {
		go func() {
			if o.Purpose != purposeLauncher { // a rank of an earlier job
				_ = conn.Close()
				return
			}
			select {
			case conns <- conn:
			case <-ctx.Done():
				_ = conn.Close()
			}
		}()
	})
	defer func() { _ = server.Close() }() // the nodes have joined, or the job fails

	joined := make([]*nodeJoin, self.Nodes)

	for joined[0] = &self; slices.Contains(joined, nil); {
		select {
		case conn := <-conns:
			j, err := l.admitNode(conn, joined)
			if err != nil {
				return err
			}

			joined[j.Node], l.nodes.conns[j.Node] = j, conn
			go l.nodes.read(j.Node, conn)
		case m := <-l.nodes.messages:
			return fmt.Errorf("node %d, on host %s, has left: %w", m.node, joined[m.node].Host, m.reason())
		case <-ctx.Done():
			missing := slices.Index(joined, nil)
			return fmt.Errorf("waiting for the launcher of node %d: %w %s", missing, context.Cause(ctx), server.Strangers())
		}
	}

	l.nodes.First, l.nodes.Hosts = []int{0}, nil
	for node, j := range joined {
		l.nodes.First = append(l.nodes.First, l.nodes.First[node]+j.Ranks)
		l.nodes.Hosts = append(l.nodes.Hosts, j.Host)
	}
	l.nodes.send(nodeMessage{Start: &l.nodes.nodeStart})
	return nil
}

// admitNode reads who has connected.
func (l *launcher) admitNode(conn net.Conn, joined []*nodeJoin) (*nodeJoin, error) {
	_ = conn.SetReadDeadline(time.Now().Add(silence))
	var m nodeMessage
	err := json.NewDecoder(conn).Decode(&m)
	_ = conn.SetReadDeadline(time.Time{})

	switch j := m.Join; {
	case err != nil || j == nil:
		err = fmt.Errorf("a launcher at %v did not say who it is: %w", conn.RemoteAddr(), err)
	case j.Nodes != len(joined):
		err = fmt.Errorf("node %d, on host %s, was started with --nnodes %d, and node 0 with --nnodes %d", j.Node, j.Host, j.Nodes, len(joined))
	case j.Node < 1 || j.Node >= len(joined) || joined[j.Node] != nil:
		err = fmt.Errorf("a launcher on host %s says it is node %d of %d, and that is another one or none: give each a --node-rank of its own", j.Host, j.Node, len(joined))
	default:
		watchHost(conn)
		return j, nil
	}

	_ = json.NewEncoder(conn).Encode(nodeMessage{Failed: err.Error()}) // it may have gone
	return nil, errors.Join(err, conn.Close())
}

// followNode0 joins the launcher of node 0.
func (l *launcher) followNode0(ctx context.Context, self nodeJoin) error {
	o := handshake.Opening{Purpose: purposeLauncher, From: uint32(self.Node)}

	for {
		conn, err := handshake.Dial(ctx, l.Nodes.Endpoint, nil, l.nodes.secret, o)
		if err == nil {
			l.nodes.conns[0] = conn
			break
		}

		isFinal := errors.Is(err, handshake.ErrOtherSecret) || errors.Is(err, handshake.ErrOtherProgram)
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			isFinal = true
		}
		if isFinal {
			return fmt.Errorf("the launcher of node 0, at %s: %w", l.Nodes.Endpoint, err)
		}
	}

	watchHost(l.nodes.conns[0])
	l.nodes.send(nodeMessage{Join: &self})
	go l.nodes.read(0, l.nodes.conns[0])

	select {
	case m := <-l.nodes.messages:
		if m.Start == nil {
			return fmt.Errorf("the launcher of node 0, at %s: %w", l.Nodes.Endpoint, m.reason())
		}
		l.nodes.nodeStart = *m.Start
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the launchers of all nodes: %w", context.Cause(ctx))
	}
}

// reason returns why a launcher gives up, or is lost.
func (m *nodeMessage) reason() error {
	if m.Failed != "" {
		return errors.New(m.Failed)
	}
	return m.err
}

// read passes on the messages of another launcher, until its connection ends.
func (n *nodes) read(node int, conn net.Conn) {
	decoder := json.NewDecoder(conn)

	for {
		m := nodeMessage{}
		m.err = decoder.Decode(&m)
		m.node = node

		select {
		case n.messages <- m:
		case <-n.ended:
			return
		}
		if m.err != nil {
			return
		}
	}
}

// send sends a message to the other launchers that this one has to do with.
func (n *nodes) send(m nodeMessage) {
	m.Sent = time.Now()
	for _, conn := range n.conns {
		if conn != nil {
			_ = conn.SetWriteDeadline(time.Now().Add(silence))
			if json.NewEncoder(conn).Encode(m) != nil {
				_ = conn.Close() // read notices it
			}
		}
	}
}

// close ends the connections.
func (n *nodes) close() {
	close(n.ended)
	for _, conn := range n.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// first is the first rank of this node, and ranks their number on all nodes.
func (l *launcher) first() int   { return l.nodes.First[l.Nodes.Rank] }
func (l *launcher) world() int   { return l.nodes.First[len(l.nodes.First)-1] }
func (l *launcher) here() []rank { return l.ranks[l.first():l.nodes.First[l.Nodes.Rank+1]] }

// isHere reports whether a rank is of this node.
func (l *launcher) isHere(i int) bool { return i >= l.first() && i < l.nodes.First[l.Nodes.Rank+1] }

// nodeVariables are those of all ranks of a job of several nodes.
func (l *launcher) nodeVariables() []string {
	host, port, err := net.SplitHostPort(l.Nodes.Endpoint)
	if l.Nodes.Count < 2 || err != nil {
		return nil
	}
	return []string{"MASTER_ADDR=" + host, "MASTER_PORT=" + port, fmt.Sprintf("GOCCL_NODES=%d", l.Nodes.Count), fmt.Sprintf("GROUP_RANK=%d", l.Nodes.Rank)}
}

// rankState is how a rank of another node is.
type rankState struct {
	Rank
	Number                                  int
	Started, Died                           time.Time
	HasEnded, HasRest, WasAsked, WasStopped bool
	Hidden, Build, Shortage                 string
	Last, Crash                             [2][]byte // of its output, once it has finished
}

// sendRanks tells node 0 how the ranks of this node are; isFinal: they have finished, and how.
func (l *launcher) sendRanks(isFinal bool) {
	if l.Nodes.Rank == 0 || l.running == 0 && !isFinal {
		return
	}
	m := nodeMessage{Final: isFinal}

	for i := range l.here() {
		i += l.first()
		l.readReport(i)
		r := &l.ranks[i]
		s := rankState{Rank: r.Rank, Number: i, Started: r.started, Died: r.died, HasEnded: r.ended, HasRest: r.hasRest,
			WasAsked: r.wasAsked, WasStopped: r.wasStopped, Hidden: r.hidden, Build: r.build, Shortage: r.shortage}
		for k := range r.streams {
			if isFinal {
				s.Last[k], s.Crash[k] = r.streams[k].last, r.streams[k].crash
			}
		}
		m.Ranks = append(m.Ranks, s)
	}

	l.nodes.send(m)
}

// handleNode does what another launcher says.
func (l *launcher) handleNode(m nodeMessage) {
	failed := m.err != nil || m.Failed != ""
	switch {
	case l.Nodes.Rank == 0 && failed:
		l.loseNode(m)
	case l.Nodes.Rank == 0 && m.Signal != 0:
		l.endBySignal(m.Signal)
	case l.Nodes.Rank == 0:
		l.noteRanks(m)
	// Node 0 has spoken.
	case failed:
		l.nodes.done = &NodeError{statusFailed, fmt.Sprintf("the launcher of node 0, on host %s, is lost: %v", l.nodes.Hosts[0], m.reason())}
		l.signalAll(syscall.SIGTERM)
	case m.Done != nil:
		l.nodes.done = m.Done

		l.signalAll(syscall.SIGTERM)
	case m.Signal != 0:
		l.nodes.stacks = m.Stacks
		l.signalAll(m.Signal)
	case m.Watch:
		l.nodes.ticks = time.Tick(watchPause)
		l.sendRanks(false)
	}
}

// noteRanks notes how the ranks of another node are. Clocks of nodes differ by the time between the
// sending of the message and now, as far as anybody knows.
func (l *launcher) noteRanks(m nodeMessage) {
	skew := time.Since(m.Sent.Round(0))
	for _, s := range m.Ranks {
		if s.Number < l.nodes.First[m.node] || s.Number >= l.nodes.First[m.node+1] {
			continue
		}
		r := &l.ranks[s.Number]
		hadEnded := r.ended
		r.Rank, r.shortage, r.wasAsked, r.wasStopped, r.isFinished = s.Rank, s.Shortage, s.WasAsked, s.WasStopped, m.Final
		r.started, r.died, r.ended, r.hidden, r.hasRest, r.build = s.Started.Add(skew), s.Died.Add(skew), s.HasEnded, s.Hidden, s.HasRest, s.Build
		if r.Report != nil {
			r.Report.Time = r.Report.Time.Add(skew)
		}

		for k := range r.streams {
			r.streams[k].last, r.streams[k].crash = s.Last[k], s.Crash[k]
		}
		if r.ended && !hadEnded {
			l.noteFailure(s.Number)
		}
	}
	if m.Final {
		l.running -= len(m.Ranks)
	}
	l.endIfBlamed(false)
}

// loseNode ends the job because a launcher gives up, or its connection has ended.
func (l *launcher) loseNode(m nodeMessage) {
	for i := l.nodes.First[m.node]; i < l.nodes.First[m.node+1]; i++ {
		if r := &l.ranks[i]; !r.isFinished {
			l.running--
			if r.isFinished = true; !r.ended {
				r.ended, r.died = true, time.Now()
				r.lost = fmt.Sprintf("the loss of node %d, host %s: %v", m.node, l.nodes.Hosts[m.node], m.reason())
				l.noteFailure(i)
			}
		}
	}
	l.endIfBlamed(false)
}

// signalNodes sends a signal to the ranks of all other nodes, from node 0, or asks node 0 to do so.
func (l *launcher) signalNodes(s syscall.Signal) {
	m := nodeMessage{Signal: s}
	for i := range l.ranks {
		if s == syscall.SIGTERM && !l.isHere(i) && l.isAwaited(i) {
			m.Stacks = append(m.Stacks, i)
		}
	}
	if l.Nodes.Rank == 0 {
		l.nodes.send(m)
	}
}

// endNodes tells the other launchers how the job has ended, or waits until node 0 does.
func (l *launcher) endNodes(err error) error {
	if l.Nodes.Rank == 0 {
		done := &NodeError{}
		if status := interface{ ExitCode() int }(nil); errors.As(err, &status) {
			done.Status = status.ExitCode()
		} else if err != nil {
			done.Status = statusFailed
		}

		if ended, ok := errors.AsType[*EndedError](err); ok {
			done.Text = ended.headline()
		} else if err != nil {
			done.Text = err.Error()
		}
		done.Text = fmt.Sprintf("%s (node 0, on host %s, has the whole error)", done.Text, l.nodes.Hosts[0])
		l.nodes.send(nodeMessage{Done: done})
		return err
	}

	l.sendRanks(true)

	for l.nodes.done == nil {
		select {
		case m := <-l.nodes.messages:
			l.handleNode(m)
		case s := <-l.Signals:
			if isSecond := l.failure.signal != 0; isSecond {
				return &NodeError{statusSignal + int(l.failure.signal), "interrupted before node 0 has said how the job ended"}
			}
			l.failure.signal = s.(syscall.Signal)
			l.nodes.send(nodeMessage{Signal: l.failure.signal})
		}
	}

	if l.nodes.done.Status == 0 {
		return err
	}
	return l.nodes.done
}

// nodeOf returns the node of a rank.
func (l *launcher) nodeOf(rank int) int {
	return slices.IndexFunc(l.nodes.First, func(first int) bool { return first > rank }) - 1
}
