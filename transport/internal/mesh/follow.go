package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/transport"
)

// follow is Connect of all ranks but 0.
func (j *joining) follow(ctx context.Context) (*Mesh, error) {
	conn, err := j.reach(ctx)
	if err != nil {
		return nil, err
	}
	root := &peer{conn, 0}
	defer func() { _ = root.Close() }() // all was sent, or is of no use

	address := conn.LocalAddr().(*net.TCPAddr)
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: address.IP, Zone: address.Zone})
	if err != nil {
		return nil, err // rank 0 notices the end of the connection
	}
	j.listener = handshake.Serve(l, j.Secret, j.accept)
	if err := root.send(&message{Member: j.member()}); err != nil {
		return nil, j.lostRoot(err)
	}

	events := make(chan event)
	go root.readAll(events, j.ended)
	return j.await(ctx, root, events)
}

// await waits for rank 0, and connects with the others when it says who they are.
func (j *joining) await(ctx context.Context, root *peer, events chan event) (*Mesh, error) {
	var l *linking
	for {
		var e event
		select {
		case e = <-events:
		case <-ctx.Done():
			l.discard()
			return nil, j.giveUp(root, events, j.endOf(ctx))
		}

		switch {
		case e.err != nil:
			l.discard()
			return nil, j.lostRoot(e.err)
		// This rank, or the ranks, cannot join.
		case e.Failure != nil && e.rank == j.Rank:
			l.discard()
			return nil, j.giveUp(root, events, l.err)
		case e.Failure != nil:
			l.discard()
			return nil, errorOf(e.Failure, j.Rank)
		// The ranks have all come, and then are connected.
		case e.Table != nil && l == nil && len(e.Table.Members) == j.Size:
			l = j.startLink(ctx, e.Table, events)
		case e.Linked && e.rank == j.Rank:
			_ = root.send(e.message) // if it is lost, so is the connection
		case e.Ready && l != nil:
			return l.take(), nil
		default:
			l.discard()
			return nil, &transport.AbortedError{By: 0, Cause: errors.New("rank 0 sent a message out of order")}
		}
	}
}

// Pauses between two attempts to reach another rank.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = 200 * time.Millisecond
)

// reach connects this rank with rank 0, which may come later.
func (j *joining) reach(ctx context.Context) (net.Conn, error) {
	opening := handshake.Opening{Purpose: purposeJoin, From: uint32(j.Rank)}
	var last error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		address, err := j.Rendezvous.Find(ctx)
		if err == nil {
			var conn net.Conn
			if conn, err = handshake.Dial(ctx, address, j.from, j.Secret, opening); err == nil {
				j.root = address
				return conn, nil
			}
			err = fmt.Errorf("rank 0 at %s: %w", address, err)
		}

		if isFinal(err) {
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

// isFinal reports whether it makes no sense to dial again after err.
func isFinal(err error) bool {
	_, isVersion := errors.AsType[handshake.VersionError](err)
	return isVersion || errors.Is(err, handshake.ErrOtherSecret) || errors.Is(err, handshake.ErrOtherProgram)
}

// sleep pauses, and reports whether ctx goes on.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lostRoot is the error of a connection to rank 0 that has ended.
func (j *joining) lostRoot(err error) error {
	return fmt.Errorf("%w; its connection, to %s, ended: %w", &transport.PeerLostError{Rank: 0}, j.root, err)
}

// verdictTime is how long a rank that gives up waits for what rank 0 says to all of them.
const verdictTime = time.Second

// giveUp tells rank 0 that this rank cannot join, and returns why the ranks do not.
func (j *joining) giveUp(root *peer, events <-chan event, err error) error {
	_ = root.send(&message{Failure: j.failureOf(err)}) // if it is lost, so is the connection
	late := time.NewTimer(verdictTime)
	defer late.Stop()
	for {
		select {
		case e := <-events:
			isVerdict := e.err == nil && e.Failure != nil && e.rank == 0
			if e.err != nil || isVerdict && errors.Is(err, context.Canceled) {
				return err
			}
			if isVerdict {
				return errorOf(e.Failure, j.Rank)
			}

		case <-late.C:
			return err
		}
	}
}
