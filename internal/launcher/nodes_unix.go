//go:build unix

package launcher

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
)

// A job of several nodes has a launcher on each. The one of node 0 decides: it learns how all ranks
// end, finds who is to blame, and says to all when and how the job ends. The others do to their
// ranks what it says, and end them by themselves if they lose it.

// nodes are the launchers of a job's other nodes, and what is the job's rather than this node's.
type nodes struct {
	*Launchers
	job    string           // its name; what a launcher makes on its node has a name of its own
	secret string           // by which ranks recognise each other; in no other process's arguments
	first  []int            // by node, its first rank; then the number of ranks
	stacks []int            // ranks that node 0 asks for their stacks
	ticks  <-chan time.Time // at which node 0 wants to know how the ranks are; nil: it does not
	late   <-chan time.Time // by which other nodes have ended their ranks
	done   *NodeError       // from node 0
}

// nodeFacts are what launchers tell each other before a job.
type nodeFacts struct {
	Job, Host      string
	Ranks, Restart int
}

// Times of launchers of several nodes.
const (
	startTime  = 10 * time.Minute // for all to come, unless Nodes.Timeout says
	watchPause = 50 * time.Millisecond
	answerTime = 2 * time.Second // of a node whose ranks others have lost
)

// joinNodes finds the launchers of the other nodes. The first rank of this node, the number of
// ranks and the name of the job are known then. The error is a *RefusedError.
func (l *launcher) joinNodes(ctx context.Context) error {
	n := &l.nodes
	*n = nodes{Launchers: &Launchers{ended: make(chan struct{})}, job: l.name, secret: rand.Text(), first: []int{0, l.Ranks}}
	if l.Nodes.Count < 2 {
		return l.Nodes.Invalid
	}
	if l.Nodes.Invalid != nil {
		l.warn(-1, fmt.Sprintf("%v: the other nodes are told", l.Nodes.Invalid))
	}

	ctx, stop := l.untilSignal(ctx)
	defer stop()
	connected, err := l.Nodes.Connect(ctx, "goccl run")
	if err == nil {
		n.Launchers, n.secret = connected, l.Nodes.Secret
		err = l.Nodes.Invalid
	}

	if err == nil {
		var all []nodeFacts
		all, err = Exchange(ctx, connected, nodeFacts{l.name, hostname(), l.Ranks, l.restart})
		n.first = []int{0}
		for node, of := range all {
			n.hosts[node], n.first = of.Host, append(n.first, n.first[node]+of.Ranks)
			if of.Ranks < 1 || n.first[node+1] > MaxRanks {
				err = fmt.Errorf("ranks %d of %d are to be on %s: from 1 to %d are possible on all nodes together", n.first[node], n.first[node+1], connected.describe(node), MaxRanks)
				break
			}
		}

		if err == nil {
			n.job, l.restart = all[0].Job, all[0].Restart
		}
	}

	stop()
	if s, ok := errors.AsType[signalError](context.Cause(ctx)); ok && err == nil {
		err = s // nobody else gets it
	}
	if err == nil {
		return nil
	}
	n.GiveUp(err)
	return &RefusedError{exitStatus(err), err}
}

// signalError is a signal that ends a launcher before there are ranks.
type signalError syscall.Signal

func (s signalError) Error() string { return SignalName(syscall.Signal(s)) + " came" }
func (s signalError) ExitCode() int { return statusSignal + int(s) }

// untilSignal returns a context that ends with ctx, when launchers have waited long enough, or by a
// signal that ends jobs. stop ends it as well, and waits until no signal is taken any more.
func (l *launcher) untilSignal(ctx context.Context) (until context.Context, stop func()) {
	limit := cmp.Or(l.Nodes.Timeout, startTime)
	ctx, expire := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%v have passed (--rdzv-conf join_timeout=SECONDS sets how long launchers wait)", limit))
	ctx, cancel := context.WithCancelCause(ctx)
	taking := make(chan struct{})

	go func() {
		defer close(taking)
		for {
			select {
			case s := <-l.Signals:
				// Others mean something to ranks only.
				if slices.Contains(endSignals, s) {
					cancel(signalError(s.(syscall.Signal)))
				}
			case <-ctx.Done():
				return
			}
		}
	}()

	return ctx, func() {
		cancel(nil)
		<-taking
		expire()
	}
}

// firstHere is the first rank of this node, and world the number of ranks on all nodes.
func (l *launcher) firstHere() int { return l.nodes.first[l.Nodes.Rank] }
func (l *launcher) world() int     { return l.nodes.first[len(l.nodes.first)-1] }

// here returns the ranks of this node, and isHere whether a rank is one of them.
func (l *launcher) here() []rank      { return l.ranks[l.firstHere():][:l.Ranks] }
func (l *launcher) isHere(i int) bool { return l.nodeOf(i) == l.Nodes.Rank }

// nodeOf returns the node of a rank.
func (l *launcher) nodeOf(rank int) int {
	return slices.IndexFunc(l.nodes.first, func(first int) bool { return first > rank }) - 1
}

// makeRanks makes the ranks of all nodes, of which those of others need not be started.
func (l *launcher) makeRanks() {
	l.ranks = make([]rank, l.world())
	if l.Nodes.Rank == 0 {
		l.running = l.world() - l.Ranks
	}
	for i := range l.ranks {
		if node := l.nodeOf(i); l.Nodes.Count > 1 {
			l.ranks[i].Node, l.ranks[i].Host = node, l.nodes.hosts[node]
		}
	}
}

// nodeVariables are those of all ranks of a job of several nodes.
func (l *launcher) nodeVariables() []string {
	host, port, err := net.SplitHostPort(l.Nodes.Endpoint)
	if l.Nodes.Count < 2 || err != nil {
		return nil
	}
	return []string{"MASTER_ADDR=" + host, "MASTER_PORT=" + port, fmt.Sprintf("%s=%d", launchenv.NodesVariable, l.Nodes.Count), fmt.Sprintf("GROUP_RANK=%d", l.Nodes.Rank)}
}

// sendRanks tells node 0 how ranks of this node are.
func (l *launcher) sendRanks(ranks ...int) {
	if l.Nodes.Rank == 0 {
		return
	}
	m := nodeMessage{}
	for _, i := range ranks {
		l.readReport(i)
		r := &l.ranks[i]
		s := rankState{Rank: r.Rank, Number: i, Started: r.started, Died: r.died, HasEnded: r.ended, IsFinished: r.isFinished, HasRest: r.hasRest,
			WasAsked: r.wasAsked, WasStopped: r.wasStopped, Hidden: r.hidden, Shortage: r.shortage, Result: l.resultOf(i)}

		for k := range r.streams {
			if r.isFinished {
				s.Last[k], s.Crash[k] = r.streams[k].last, r.streams[k].crash
			}
		}
		m.Ranks = append(m.Ranks, s)
	}
	l.nodes.send(m)
}

// sendAll tells node 0 how the ranks of this node are that have not finished.
func (l *launcher) sendAll() {
	var unfinished []int
	for i := range l.here() {
		if i += l.firstHere(); !l.ranks[i].isFinished {
			unfinished = append(unfinished, i)
		}
	}
	l.sendRanks(unfinished...)
}

// handleNode does what another launcher says.
func (l *launcher) handleNode(m nodeMessage) {
	isEnd := m.err != nil || m.Done != nil
	switch node := slices.Index(l.nodes.conns, m.from); {
	case node < 0: // it was lost before
	// To node 0.
	case l.Nodes.Rank == 0 && isEnd:
		l.loseNode(node, m.loss(), m.Done)
	case l.Nodes.Rank == 0 && m.Signal == syscall.SIGKILL: // a second interrupt
		l.ending.grace = -1
		l.signalAll(m.Signal)
	case l.Nodes.Rank == 0 && m.Signal != 0:
		l.forward(m.Signal)
	case l.Nodes.Rank == 0:
		l.noteRanks(node, m)
	// From node 0.
	case l.nodes.done != nil: // for the last time
	case isEnd:
		if l.nodes.done = m.Done; m.Done == nil {
			l.nodes.done = &NodeError{Status: statusFailed, Text: l.nodes.describe(0) + ", was lost: " + m.loss(), isLost: true}
		}
		l.signalAll(syscall.SIGTERM)
	// The job goes on, or begins to end.
	case m.Signal != 0:
		l.nodes.stacks = m.Stacks
		l.signalAll(m.Signal)
	case m.Watch:
		l.nodes.ticks = time.Tick(watchPause)
		l.sendAll()
	case m.Ended != nil:
		l.reportEnd(*m.Ended)
	}
}

// noteRanks notes how ranks of another node are. Its clock differs by the time between the sending
// of a message and now, of all messages the shortest, as far as anybody knows.
func (l *launcher) noteRanks(node int, m nodeMessage) {
	m.from.heard, m.from.skew = time.Now(), min(m.from.skew, time.Since(m.Sent))
	for _, s := range m.Ranks {
		if l.nodeOf(s.Number) != node || l.ranks[s.Number].isFinished {
			continue
		}
		r := &l.ranks[s.Number]

		hadEnded := r.ended
		r.Rank, r.shortage, r.wasAsked, r.wasStopped, r.isFinished = s.Rank, s.Shortage, s.WasAsked, s.WasStopped, s.IsFinished
		r.started, r.died, r.ended, r.hidden, r.hasRest, r.result = s.Started.Add(m.from.skew), s.Died.Add(m.from.skew), s.HasEnded, s.Hidden, s.HasRest, s.Result
		if r.Report != nil {
			r.Report.Time = r.Report.Time.Add(m.from.skew)
		}
		for k := range r.streams {
			r.streams[k].last, r.streams[k].crash = s.Last[k], s.Crash[k]
		}

		if r.ended && !hadEnded {
			l.noteFailure(s.Number)
		}
		if r.isFinished {
			l.noteFinished(s.Number)
		}
	}
	l.endIfBlamed(false)
}

// loseNode ends the job because a launcher gives up, or its connection has ended.
func (l *launcher) loseNode(node int, loss string, end *NodeError) {
	_ = l.nodes.conns[node].Close() // it may have ended
	l.nodes.conns[node] = nil

	for i := l.nodes.first[node]; i < l.nodes.first[node+1]; i++ {
		r := &l.ranks[i]
		if r.isFinished {
			continue
		}
		l.running--

		if r.isFinished = true; !r.ended {
			r.ended, r.died, r.Lost = true, time.Now(), loss
			if end != nil {
				r.Exit = end.Status
			}
			l.noteFailure(i)
		}
	}
	l.endIfBlamed(false)
}

// loseSilent loses the nodes of ranks to blame that have not answered since a rank has failed, and
// reports whether others may still answer, or say how a rank has ended that others have lost. To a
// rank whose host is down, or cut off, other ranks are the first to lose their connections.
func (l *launcher) loseSilent() (isWaiting bool) {
	since := l.started.Add(l.failure.after)
	mayAnswer := time.Since(since) < answerTime

	for _, i := range slices.Clone(l.failure.blamed) {
		node := l.nodeOf(i)
		if l.Nodes.Rank > 0 || node == 0 || l.ranks[i].ended {
			continue
		}

		switch hasAnswered := l.nodes.conns[node].heard.After(since); {
		case mayAnswer:
			isWaiting = isWaiting || !hasAnswered || l.failure.cause == CauseLeft
		case !hasAnswered:
			l.loseNode(node, "it does not answer: its host is down, or the link to it is cut", nil)
		}
	}

	if isWaiting {
		l.ending.blamedLate = time.After(blameGrace)
	}
	return isWaiting
}

// loseLate loses the nodes that have not ended their ranks in time.
func (l *launcher) loseLate() {
	for i := range l.ranks {
		if node := l.nodeOf(i); !l.ranks[i].isFinished && node > 0 && l.Nodes.Rank == 0 {
			l.loseNode(node, "its launcher does not end its ranks", nil)
		}
	}
}

// signalNodes sends a signal to the ranks of all other nodes, from node 0.
func (l *launcher) signalNodes(s syscall.Signal) {
	if l.Nodes.Rank > 0 {
		return
	}
	m := nodeMessage{Signal: s}
	for i := range l.ranks {
		if s == syscall.SIGTERM && !l.isHere(i) && l.isAwaited(i) {
			m.Stacks = append(m.Stacks, i)
		}
	}
	l.nodes.send(m)
}

// endNodes tells the other launchers how the job has ended after so long, or waits until node 0
// does.
func (l *launcher) endNodes(err error, took time.Duration) error {
	switch {
	case l.Nodes.Count < 2:
		return err
	case l.Nodes.Rank == 0:
		// One line is enough for the others.
		if ended, ok := errors.AsType[*EndedError](err); ok {
			text := fmt.Sprintf("%s (%s, has the whole error)", ended.headline(), l.nodes.describe(0))
			l.nodes.send(nodeMessage{Done: &NodeError{Status: exitStatus(err), Text: text, Restart: l.isFollowed(err, took)}})
		} else if err != nil {
			l.nodes.GiveUp(err)
		} else {
			l.nodes.send(nodeMessage{Done: &NodeError{}})
		}
		return err
	}

	for l.nodes.done == nil && !l.ending.aborted {
		select {
		case m := <-l.nodes.messages:
			l.handleNode(m)
		case s := <-l.Signals:
			if slices.Contains(endSignals, s) {
				l.endBySignal(s.(syscall.Signal))
			}
		}
	}

	if l.nodes.done == nil {
		return signalError(syscall.SIGINT)
	}
	if l.nodes.done.Status == 0 {
		return err
	}
	if l.failure.isInterrupted {
		l.nodes.done.Restart, l.nodes.done.isLost = false, false
	}
	return l.nodes.done
}
