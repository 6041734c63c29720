package mesh

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/handshake"
)

// linking is a rank that connects with all others.
type linking struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	mesh    *Mesh // unless err
	err     error
}

// startLink connects this rank with all others. It ends with an event of this rank's own: a message
// that it is linked or has failed, as for rank 0.
func (j *joining) startLink(ctx context.Context, t *table, events chan<- event) *linking {
	ctx, cancel := context.WithCancel(ctx)
	l := &linking{cancel: cancel}

	l.running.Go(func() {
		m := &message{Linked: true}
		if l.mesh, l.err = j.link(ctx, t); l.err != nil {
			m = &message{Failure: j.failureOf(l.err)}
		}
		select {
		case events <- event{&peer{rank: j.Rank}, m, nil}:
		case <-ctx.Done():
		}
	})
	return l
}

// take returns the mesh of a rank that is linked.
func (l *linking) take() *Mesh {
	l.cancel()
	l.running.Wait()
	return l.mesh
}

// discard ends it, unless it has not begun.
func (l *linking) discard() {
	if l == nil {
		return
	}
	if m := l.take(); m != nil {
		_ = m.Close()
	}
}

// dialing bounds how many connections a rank dials at the same time.
const dialing = 16

// link dials the ranks below this one, and waits for those above it.
func (j *joining) link(outer context.Context, t *table) (_ *Mesh, err error) {
	m := j.newMesh(t)
	ctx, cancel := context.WithCancelCause(outer)
	var running sync.WaitGroup
	defer func() {
		cancel(nil)
		running.Wait()
		if err != nil {
			_ = m.Close()
		}
	}()

	slots, missing := make(chan struct{}, dialing), 0
	for rank, lanes := range m.Conns {
		for lane := range lanes {
			if rank > j.Rank {
				missing++
				continue
			}

			running.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				conn, err := j.dialLane(ctx, t, rank, lane)
				if err != nil {
					cancel(fmt.Errorf("rank %d on host %s cannot connect to rank %d on host %s: %w", j.Rank, j.host, rank, t.Members[rank].Host, err))
				}
				lanes[lane] = conn
			})
		}
	}

	for {
		for _, l := range j.takeLinks() {
			missing -= m.accept(l, t)
		}
		if missing == 0 {
			break
		}

		select {
		case <-j.changed:
		case <-ctx.Done():
			return nil, cmp.Or(j.endOf(outer), context.Cause(ctx))
		}
	}
	running.Wait()
	if ctx.Err() != nil {
		return nil, cmp.Or(j.endOf(outer), context.Cause(ctx))
	}
	return m, nil
}

// newMesh returns the mesh without connections.
func (j *joining) newMesh(t *table) *Mesh {
	m := &Mesh{Rank: j.Rank, Size: j.Size, Node: make([]int, j.Size), Hosts: make([]string, j.Size), Conns: make([][]net.Conn, j.Size)}
	nodes := 0
	for rank, self := range t.Members {
		m.Hosts[rank] = self.Host
		first := slices.IndexFunc(t.Members, func(o *member) bool { return o.Memory == t.Members[rank].Memory })
		if m.Node[rank] = m.Node[first]; first == rank || self.Memory == "" {
			m.Node[rank] = nodes
			nodes++
		}
	}

	for rank := range m.Conns {
		switch {
		case rank == j.Rank:
		case m.Node[rank] == m.Node[j.Rank]:
			m.Conns[rank] = make([]net.Conn, 1)
		default:
			m.Conns[rank] = make([]net.Conn, max(j.Lanes, 1))
		}
	}
	return m
}

// dialTime is how long a rank tries to connect to one that listens.
const dialTime = 10 * time.Second

// dialLane dials a lane of a rank below this one.
func (j *joining) dialLane(ctx context.Context, t *table, rank, lane int) (net.Conn, error) {
	address := t.Members[rank].Address
	if rank == 0 {
		address = j.root // where this rank has reached it
	}
	o := handshake.Opening{Purpose: purposeLink, Number: uint32(lane), From: uint32(j.Rank), To: uint32(rank), Session: t.Session}
	within, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	for {
		conn, err := handshake.Dial(within, address, j.from, j.Secret, o)
		if err == nil || isFinal(err) || !sleep(within, longestPause) {
			return conn, err
		}
	}
}

// addLink notes a connection that another rank has dialed, perhaps before this one knows its
// session.
func (j *joining) addLink(l link) {
	j.mu.Lock()
	j.links = append(j.links, l)
	j.mu.Unlock()
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

// takeLinks returns the connections that others have dialed since the last call.
func (j *joining) takeLinks() []link {
	j.mu.Lock()
	defer j.mu.Unlock()
	links := j.links
	j.links = nil
	return links
}

// accept makes a connection a lane of the mesh, and returns how many lanes that adds. A rank that
// was not answered in time dials a second time.
func (m *Mesh) accept(l link, t *table) (added int) {
	o := l.opening
	if rank := int(o.From); o.Session == t.Session && rank > m.Rank && rank < m.Size && int(o.Number) < len(m.Conns[rank]) {
		before := m.Conns[rank][o.Number]
		m.Conns[rank][o.Number] = l.Conn
		if before == nil {
			return 1
		}
		l.Conn = before
	}
	_ = l.Close()
	return 0
}
