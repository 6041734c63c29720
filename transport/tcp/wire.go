package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/transport/internal/packet"
)

// wire implements packet.Wire and packet.Awaiter by one connection to each other process. A packet
// has its length in the wire's bytes.
type wire struct {
	rank   int
	pool   packet.Pool
	peers  []*peer // by rank; nil: this process
	others []*peer
	waiter waiter

	first   int // of others: the one that Poll reads first
	probing sync.WaitGroup
}

// waiter waits until connections can be read, or written where that was asked for.
type waiter interface {
	// await returns then, when wake is or was called, or after that time.
	await(limit time.Duration)
	wake()
	close() error
}

// newWire returns the wire of a process whose connections to the others are conns, by rank: packets
// go by the first one, and the second one, if there is one, tells whether the other host is there.
func newWire(rank int, conns [][]net.Conn, silence time.Duration) (*wire, error) {
	w := &wire{rank: rank, peers: make([]*peer, len(conns))}
	carriers := make([]net.Conn, len(conns))
	for r, lanes := range conns {
		if r == rank {
			continue
		}
		if len(lanes) < 1 || len(lanes) > 2 {
			return nil, fmt.Errorf("%d connections to rank %d instead of one or two", len(lanes), r)
		}

		p := &peer{rank: r, pool: &w.pool, in: inbound{buffer: make([]byte, bufferBytes)}}
		w.peers[r], w.others = p, append(w.others, p)
		carriers[r] = lanes[0]
		if len(lanes) > 1 {
			p.probe = lanes[1]
		}
		if watched := handshake.Unwrap(lanes[len(lanes)-1]); watched != nil {
			if err := watched.SetKeepAliveConfig(keepAlive(silence)); err != nil {
				return nil, err
			}
		}
	}

	sockets, waiter, err := open(rank, carriers)
	if err != nil {
		return nil, err
	}

	w.waiter = waiter
	for _, p := range w.others {
		p.socket = sockets[p.rank]
		p.socket.bind(p)
		if p.probe != nil {
			w.probing.Go(func() { w.watchProbe(p) })
		}
	}
	return w, nil
}

// keepAlive makes the kernel end an idle connection whose other host has been silent that long.
func keepAlive(silence time.Duration) net.KeepAliveConfig {
	const probes = 3
	each := max(silence/(probes+1), time.Second)
	return net.KeepAliveConfig{Enable: true, Idle: each, Interval: each, Count: probes}
}

// watchProbe waits for the end of a probe. That of its process is left to the other connection, by
// which packets may still be coming.
func (w *wire) watchProbe(p *peer) {
	_, err := p.probe.Read(make([]byte, 1))
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) {
		return
	}
	err = fmt.Errorf("its host does not answer: %w", err)
	p.lost.Store(&err)
	w.waiter.wake()
}

func (w *wire) Rank() int { return w.rank }
func (w *wire) Size() int { return len(w.peers) }

// Packet returns memory without room for the body.
func (w *wire) Packet(n, _ int) []byte { return w.pool.Take(n) }

func (w *wire) Release(b []byte) { w.pool.Return(b) }

func (w *wire) Send(to int, b []byte, body packet.Body) error {
	w.peers[to].send(b, body)
	return nil // Poll finds a connection that has ended once it has read all
}

func (w *wire) Settle(to int) { w.peers[to].settle() }

// Poll reads what has arrived, from one process after the other, and writes what was left to write.
func (w *wire) Poll(r packet.Receiver) (found bool, err error) {
	for i := range w.others {
		p := w.others[(w.first+i)%len(w.others)]
		p.flush()
		got, ended := p.receive(r)
		found = found || got
		if ended != nil {
			err = &packet.PeerError{Rank: p.rank, Err: ended}
			break // the next Poll begins with the others
		}
	}
	if len(w.others) > 0 {
		w.first = (w.first + 1) % len(w.others)
	}
	return found, err
}

func (w *wire) Idle() bool {
	return !slices.ContainsFunc(w.others, func(p *peer) bool { return p.hasQueue.Load() })
}

func (w *wire) Await(limit time.Duration) { w.waiter.await(limit) }

func (w *wire) Wake() { w.waiter.wake() }

// close closes the connections, once all has been written or ctx ends. Nobody polls any more.
func (w *wire) close(ctx context.Context) error {
	for !w.Idle() && ctx.Err() == nil {
		for _, p := range w.others {
			p.flush()
		}
		time.Sleep(napTime)
	}

	var errs []error
	for _, p := range w.others {
		errs = append(errs, p.close())
	}
	w.probing.Wait()
	return errors.Join(append(errs, w.waiter.close())...)
}

// napTime is between two attempts to write what is left.
const napTime = 100 * time.Microsecond
