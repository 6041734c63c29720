package mesh

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl/transport"
)

// leader is what rank 0 does for all ranks, of which it is one. It decides.
type leader struct {
	*joining
	running sync.WaitGroup

	mu       sync.Mutex
	all      []net.Conn // to all that know the secret
	members  []*member  // that have come, by rank
	conns    []net.Conn // to them
	isLinked []bool
	decision *message // Ready, or a Failure; nil: not yet
}

func newLeader(j *joining) *leader {
	return &leader{joining: j, members: make([]*member, j.Size), conns: make([]net.Conn, j.Size), isLinked: make([]bool, j.Size)}
}

// start does what a rank says, until its connection or the join has ended.
func (l *leader) start(conn net.Conn) {
	l.mu.Lock()
	l.all = append(l.all, conn) // now, so that end closes it
	l.mu.Unlock()
	l.running.Go(func() { l.serve(conn) })
}

// serve does what a rank says.
func (l *leader) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }() // the rank has left
	first, err := receive(conn)
	if err != nil || first.Member == nil || !l.admit(conn, first.Member) {
		return
	}

	rank := first.Member.Rank
	for {
		m, err := receive(conn)

		l.mu.Lock()
		switch {
		case err != nil:
			self := l.members[rank]
			l.fail(&transport.Failure{Kind: transport.FailurePeerLost, Ranks: []int{rank}, PID: self.PID, Reason: fmt.Sprintf("it was on host %s, and its connection ended: %v", self.Host, err)})
		case m.Failure != nil:
			l.fail(l.completed(m.Failure))
		// It connects.
		case m.Linked:
			if l.isLinked[rank] = true; !slices.Contains(l.isLinked, false) {
				l.decide(&message{Ready: true})
			}
		default:
			l.fail(aborted(rank, "it sent a message out of order"))
		}
		l.mu.Unlock()

		if err != nil {
			return
		}
	}
}

// decide ends the join for all ranks, unless it has ended. The caller holds mu.
func (l *leader) decide(m *message) {
	if l.decision == nil {
		l.decision = m
		l.sendAll(m)
	}
}

// fail is decide for a failure. The caller holds mu.
func (l *leader) fail(f *transport.Failure) { l.decide(&message{Failure: f}) }

// sendAll sends a message to all that have come. Who does not get it has failed, and is noticed.
// The caller holds mu.
func (l *leader) sendAll(m *message) {
	for _, conn := range l.conns {
		if conn != nil {
			_ = send(conn, m)
		}
	}
}

// refuseTime is how long rank 0 stays after a failure, to tell the ranks that come late.
const refuseTime = time.Second

// refuseLate waits for them, unless the ranks are connected.
func (l *leader) refuseLate(ctx context.Context) {
	l.mu.Lock()
	isReady := l.decision != nil && l.decision.Ready
	l.mu.Unlock()
	if !isReady {
		sleep(ctx, refuseTime)
	}
}

// end ends all connections. No more come.
func (l *leader) end() {
	l.mu.Lock()
	for _, conn := range l.all {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.running.Wait()
}

func aborted(by int, format string, args ...any) *transport.Failure {
	return &transport.Failure{Kind: transport.FailureAborted, By: by, Text: fmt.Sprintf(format, args...)}
}

// admit makes a process a member, or says to it why it is none.
func (l *leader) admit(conn net.Conn, m *member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Job != l.Job { // it does not concern this job
		_ = send(conn, &message{Failure: aborted(m.Rank, "job %q is being joined at %s, on host %s, and this rank is of job %q: give each job a port of its own", l.Job, l.listener.Addr(), l.host, m.Job)})
		return false
	}
	if text := l.misfit(m); text != "" {
		l.fail(aborted(m.Rank, "%s", text))
	}
	if l.decision != nil {
		_ = send(conn, l.decision)
		return false
	}

	l.members[m.Rank], l.conns[m.Rank] = m, conn
	if !slices.Contains(l.members, nil) {
		t := &table{Members: l.members}
		_, _ = rand.Read(t.Session[:]) // never fails
		l.sendAll(&message{Table: t})
	}
	return true
}

// misfit says why a process does not belong to those that have come, "" if it does.
func (l *leader) misfit(m *member) string {
	who := fmt.Sprintf("rank %d on host %s (pid %d)", m.Rank, m.Host, m.PID)
	switch {
	case m.Size != l.Size:
		return fmt.Sprintf("%s is one of %d ranks, and rank 0 on host %s one of %d: give all the same WORLD_SIZE", who, m.Size, l.host, l.Size)
	case m.Rank < 0 || m.Rank >= l.Size:
		return fmt.Sprintf("%s is none of the %d ranks", who, l.Size)
	case l.members[m.Rank] != nil:
		return fmt.Sprintf("two processes say they are rank %d, one on host %s (pid %d): %s; give each a rank of its own, and each job a port of its own",
			m.Rank, l.members[m.Rank].Host, l.members[m.Rank].PID, who)
	// It is one of the ranks.
	case m.Build != l.Build:
		return fmt.Sprintf("%s has another build of the program than rank 0 on host %s: %s, not %s", who, l.host, m.Build, l.Build)
	}
	return ""
}

// completed adds to a timeout who is missing, and what is known of them. The caller holds mu.
func (l *leader) completed(f *transport.Failure) *transport.Failure {
	if f.Kind != transport.FailureStuck {
		return f
	}
	f.Kind, f.Ranks = transport.FailureTimeout, nil
	var hints []string

	for rank, m := range l.members {
		if m != nil {
			continue
		}
		f.Ranks = append(f.Ranks, rank)
		isNear := func(m *member) bool { return m != nil && uint(rank+m.LocalRank-m.Rank) < uint(max(m.LocalSize, 0)) }
		if i := slices.IndexFunc(l.members, isNear); i >= 0 {
			hints = append(hints, fmt.Sprintf("rank %d should be on host %s", rank, l.members[i].Host))
		}
	}

	for rank, isLinked := range l.isLinked {
		if hasAll := !slices.Contains(l.members, nil); hasAll && !isLinked {
			f.Ranks = append(f.Ranks, rank)
		}
	}

	if strangers := l.listener.Strangers(); strangers != "" {
		hints = append(hints, strangers)
	}
	f.Reason = strings.Join(hints, "; ")
	return f
}
