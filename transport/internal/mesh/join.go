package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// Times of a rank that joins.
const (
	firstPause   = 5 * time.Millisecond // between two attempts to reach another rank
	longestPause = 200 * time.Millisecond
	dialTime     = 10 * time.Second // to reach one that listens
	verdictTime  = time.Second      // for what rank 0 says, once this rank has given up
)

// reach connects this rank with rank 0, which may come later.
func (j *joining) reach(ctx context.Context) (net.Conn, error) {
	var last error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		var conn net.Conn
		address, err := j.Rendezvous.Find(ctx)
		if err == nil {
			conn, err = handshake.Dial(ctx, address, j.from, j.identity, handshake.Opening{Purpose: purposeJoin, From: uint32(j.Rank)})
			if j.root = address; err == nil {
				err = j.receiveRoot(ctx, conn)
			}

			if err == nil {
				return conn, nil
			}
			err = fmt.Errorf("rank 0 at %s: %w", address, err)
		}

		if handshake.IsFinal(err) {
			return nil, err
		}
		if ctx.Err() == nil { // otherwise err may be about that
			last = err
		}
		if !sleep(ctx, pause) {
			break
		}
	}

	err := j.endOf(ctx)
	if late, ok := errors.AsType[*transport.TimeoutError](err); ok {
		late.Missing = []int{0}
	}
	if last != nil {
		err = fmt.Errorf("%w; %w", err, last)
	}
	return nil, err
}

// receiveRoot receives which process rank 0 is. A connection that ends before is one to nobody.
func (j *joining) receiveRoot(ctx context.Context, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	m, err := receive(conn)
	switch {
	case !stop():
		return ctx.Err()
	case err == nil && m.Member == nil:
		err = errOrder
	}

	if err != nil {
		return errors.Join(err, conn.Close())
	}
	j.rootPID = m.Member.PID
	return nil
}

// sleep pauses, and reports whether ctx goes on.
func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// verdict is how the join ends, as rank 0 decides; err: it is lost.
type verdict struct {
	*transport.Failure
	err error
}

// join connects this rank with all others, when rank 0 says who they are.
func (j *joining) join(outer context.Context, root net.Conn) (*Mesh, error) {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	tables, decided := make(chan *table, 1), make(chan verdict, 1)
	go func() {
		decided <- j.follow(root, tables)
		cancel() // unless it is done, it makes no sense to connect
	}()

	var m *Mesh
	err := send(root, &message{Member: j.member()})
	if err == nil {
		m, err = j.link(ctx, tables)
	}
	if ctx.Err() != nil {
		err = j.endOf(outer) // nil: the ranks do not join
	} else if err == nil {
		_ = send(root, &message{Linked: true}) // if it is lost, so is the connection
		select {
		case v := <-decided:
			if v == (verdict{}) {
				return m, nil
			}
			decided <- v
		case <-outer.Done():
			err = j.endOf(outer)
		}
	}

	if m != nil {
		_ = m.Close() // nothing was sent
	}
	if err != nil {
		_ = send(root, &message{Failure: groupsync.JoinFailure(j.Rank, err)})
	}
	select {
	case v := <-decided:
		return nil, j.errorOf(v, err)
	case <-time.After(verdictTime):
		return nil, err
	}
}

var errOrder = &transport.AbortedError{By: 0, Cause: errors.New("rank 0 sent a message out of order")}

// follow receives from rank 0 until it decides.
func (j *joining) follow(root net.Conn, tables chan<- *table) verdict {
	for {
		m, err := receive(root)
		switch {
		case err != nil:
			return verdict{err: fmt.Errorf("%w; its connection, to %s, ended: %w", &transport.PeerLostError{Rank: 0, PID: j.rootPID}, j.root, err)}
		case m.Failure != nil || m.Ready:
			return verdict{Failure: m.Failure}
		case m.Table == nil || len(m.Table.Members) != j.Size || slices.Contains(m.Table.Members, nil) || len(tables) > 0:
			return verdict{err: errOrder}
		}
		tables <- m.Table
	}
}

// errorOf returns the error of this rank, which may have an error itself.
func (j *joining) errorOf(v verdict, err error) error {
	f := v.Failure
	if f == nil || errors.Is(err, context.Canceled) {
		return cmp.Or[error](err, v.err, errOrder)
	}
	if f.Kind != transport.FailureAborted || f.By != j.Rank {
		err = groupsync.JoinError(f)
	} else if err == nil {
		err = errors.New(f.Text)
	}

	if f.Reason != "" {
		err = fmt.Errorf("%w; %s", err, f.Reason)
	}
	return err
}

// maxDialing bounds how many connections a rank dials at the same time.
const maxDialing = 16

// link dials the ranks below this one, and waits for those above it, once it knows them.
func (j *joining) link(outer context.Context, tables <-chan *table) (m *Mesh, err error) {
	var t *table
	select {
	case t = <-tables:
	case <-outer.Done():
		return nil, outer.Err()
	}

	m = j.newMesh(t)
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	var dialing sync.WaitGroup
	slots, missing := make(chan struct{}, maxDialing), 0
	for rank, lanes := range m.Conns {
		for lane := range lanes {
			if rank > j.Rank {
				missing++
				continue
			}

			dialing.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				var err error
				if lanes[lane], err = j.dial(ctx, t, rank, lane); err != nil {
					cancel(fmt.Errorf("rank %d on host %s cannot connect to rank %d on host %s: %w", j.Rank, j.host, rank, t.Members[rank].Host, err))
				}
			})
		}
	}

	for missing > 0 && ctx.Err() == nil {
		select {
		case l := <-j.links:
			missing -= m.accept(l)
		case <-ctx.Done():
		}
	}
	dialing.Wait()
	return m, context.Cause(ctx)
}

// newMesh returns the mesh without connections.
func (j *joining) newMesh(t *table) *Mesh {
	m := &Mesh{PIDs: make([]int, j.Size), Conns: make([][]net.Conn, j.Size), session: t.Session, self: j.Rank, attempts: make([][]uint32, j.Size)}
	for rank, member := range t.Members {
		m.PIDs[rank] = member.PID
		switch {
		case rank == j.Rank:
		case member.Node >= 0 && member.Node == j.Node:
			m.Conns[rank] = make([]net.Conn, 1)
		default:
			m.Conns[rank] = make([]net.Conn, 2)
		}

		m.attempts[rank] = make([]uint32, len(m.Conns[rank]))
	}
	return m
}

// dial dials a lane of a rank below this one.
func (j *joining) dial(ctx context.Context, t *table, rank, lane int) (net.Conn, error) {
	address := j.addressOf(t.Members[rank])
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	for attempt := uint32(1); ; attempt++ {
		conn, err := handshake.Dial(ctx, address, j.from, j.identity,
			handshake.Opening{Purpose: purposeLink, Number: uint32(lane) | attempt<<laneBits, From: uint32(j.Rank), To: uint32(rank), Session: t.Session})
		if err == nil || handshake.IsFinal(err) || !sleep(ctx, longestPause) {
			return conn, err
		}
	}
}

// addressOf returns where this rank reaches another one: rank 0 as before, and those that listen at
// all addresses on rank 0's host.
func (j *joining) addressOf(m *member) string {
	host, port, _ := net.SplitHostPort(m.Address)
	switch root, _, _ := net.SplitHostPort(j.root); {
	case m.Rank == 0:
		return j.root
	case net.ParseIP(host).IsUnspecified():
		host = root
	}
	return net.JoinHostPort(host, port)
}

// laneBits is how many bits of the number of a connection are its lane. The others are the attempt.
const laneBits = 8

// accept makes a connection a lane of the mesh, and returns how many lanes that adds. A rank that
// was not answered in time dials again, and has given up its connection of before.
func (m *Mesh) accept(l link) (added int) {
	rank, lane, attempt := int(l.opening.From), int(l.opening.Number&(1<<laneBits-1)), l.opening.Number>>laneBits
	if l.opening.Session == m.session && rank > m.self && rank < len(m.Conns) && lane < len(m.Conns[rank]) && attempt > m.attempts[rank][lane] {
		before := m.Conns[rank][lane]
		m.Conns[rank][lane], m.attempts[rank][lane] = l.Conn, attempt
		if before == nil {
			return 1
		}
		l.Conn = before
	}
	_ = l.Close()
	return 0
}
