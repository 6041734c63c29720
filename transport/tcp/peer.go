package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/transport/internal/packet"
)

// socket is a connection that is read and written without waiting.
type socket interface {
	// read reads to several pieces of memory, one after the other. n is 0 if nothing has arrived.
	read(to [][]byte) (n int, err error)
	// write writes as much as there is room for.
	write(from [][]byte) (n int, err error)
	// bind says of which process it is. It comes first.
	bind(p *peer)
	// awaitRoom makes the waiter wait for room now, once.
	awaitRoom()
	close() error
}

// peer is another process.
type peer struct {
	rank   int
	socket socket
	pool   *packet.Pool

	in    inbound
	ended atomic.Bool           // nothing more is read
	probe net.Conn              // nothing is sent by it; nil: there is none
	lost  atomic.Pointer[error] // the error of the probe

	hasQueue atomic.Bool
	mu       sync.Mutex // guards the fields below
	queue    []outgoing // has not been written
	isBroken bool       // nothing can be written
	pieces   [8][]byte
}

// outgoing is a packet that has not been written whole.
type outgoing struct {
	packet []byte // of the pool
	rest   [3][]byte
	copied []byte // of the body
}

// send writes a packet, or as much of it as there is room for.
func (p *peer) send(b []byte, body packet.Body) {
	binary.LittleEndian.PutUint32(b[packet.WireOffset:], uint32(len(b)+len(body[0])+len(body[1])))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isBroken {
		p.pool.Return(b)
		return
	}

	p.queue = append(p.queue, outgoing{packet: b, rest: [3][]byte{b, body[0], body[1]}})
	if len(p.queue) == 1 {
		p.write()
	}
	if len(p.queue) > 0 {
		p.socket.awaitRoom()
	}
}

// flush writes what was left to write.
func (p *peer) flush() {
	if !p.hasQueue.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write()
}

// write writes packets of the queue. The caller holds mu.
func (p *peer) write() {
	for len(p.queue) > 0 {
		pieces := p.pieces[:0]
		total := 0
		for _, o := range p.queue {
			for _, piece := range o.rest {
				if len(piece) > 0 && len(pieces) < len(p.pieces) {
					pieces = append(pieces, piece)
					total += len(piece)
				}
			}
		}

		n, err := p.socket.write(pieces)
		clear(p.pieces[:])
		if err != nil {
			p.breakOff()
			return
		}
		p.advance(n)
		if n < total {
			break
		}
	}
	p.hasQueue.Store(len(p.queue) > 0)
}

// advance removes n bytes from the queue. The caller holds mu.
func (p *peer) advance(n int) {
	done := 0
	for i := range p.queue {
		o := &p.queue[i]
		for j, piece := range o.rest {
			k := min(n, len(piece))
			o.rest[j], n = piece[k:], n-k
		}

		if len(o.rest[0])+len(o.rest[1])+len(o.rest[2]) > 0 {
			break
		}
		p.pool.Return(o.packet)
		done++
	}

	k := copy(p.queue, p.queue[done:])
	clear(p.queue[k:])
	p.queue = p.queue[:k]
}

// breakOff drops all that was not written. The caller holds mu.
func (p *peer) breakOff() {
	p.isBroken = true
	clear(p.queue)
	p.queue = p.queue[:0]
	p.hasQueue.Store(false)
}

// settle copies what has not been written of bodies.
func (p *peer) settle() {
	if !p.hasQueue.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write()

	for i := range p.queue {
		o := &p.queue[i]
		if n := len(o.rest[1]) + len(o.rest[2]); n > 0 && o.copied == nil {
			o.copied = append(append(make([]byte, 0, n), o.rest[1]...), o.rest[2]...)
			o.rest[1], o.rest[2] = o.copied, nil
		}
	}
}

// close closes the connections. What is sent later is dropped: another socket may have the number.
func (p *peer) close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breakOff()
	if p.probe != nil {
		err = p.probe.Close()
	}
	return errors.Join(err, p.socket.close())
}

const (
	// bufferBytes is the length in bytes of the memory in which short packets arrive.
	bufferBytes = 2 * packet.ShortBytes
	// aheadBytes is how many bytes are read with the end of a long packet, at most: if the next packet
	// is long too, they are copied.
	aheadBytes = 4 << 10
	// longestBytes is the length in bytes of the longest packet.
	longestBytes = packet.MaxBytes + 2*longestPieceBytes
	// receiveLimit is how many packets a look at a process delivers, at most.
	receiveLimit = 16
)

// inbound is what arrives from a process.
type inbound struct {
	buffer []byte
	lo, hi int // of what has arrived there and was not delivered

	// A long packet, of which rest has not arrived.
	packet   []byte
	rest     packet.Body
	isPlaced bool
	first    [packet.PlacedBytes]byte // the packet, if it is placed

	pieces [3][]byte
}

// errProcessEnded is the error of a connection that the other process's system has closed.
var errProcessEnded = errors.New("its connection has ended")

// receive delivers packets that have arrived. ended is an error, once, when no more can come.
func (p *peer) receive(r packet.Receiver) (found bool, ended error) {
	if p.ended.Load() {
		return false, nil
	}
	if err := p.lost.Load(); err != nil {
		p.ended.Store(true)
		return false, *err
	}

	for range receiveLimit {
		n, err := p.read()
		if n > 0 {
			var delivered bool
			delivered, err = p.deliver(r)
			found = found || delivered
		}

		switch {
		case err != nil:
			p.ended.Store(true)
			return found, err
		case n == 0 || !p.in.wantsMore():
			return found, nil
		}
	}
	return found, nil
}

// wantsMore reports whether a packet has arrived in part.
func (in *inbound) wantsMore() bool { return in.packet != nil || in.lo < in.hi }

// read reads the rest of a long packet, and what is behind it.
func (p *peer) read() (n int, err error) {
	in := &p.in
	if in.lo > 0 {
		in.hi = copy(in.buffer, in.buffer[in.lo:in.hi])
		in.lo = 0
	}

	pieces, ahead := in.pieces[:0], in.buffer[in.hi:]
	if in.packet != nil {
		ahead = ahead[:aheadBytes]
		for _, piece := range in.rest {
			if len(piece) > 0 {
				pieces = append(pieces, piece)
			}
		}
	}

	n, err = p.socket.read(append(pieces, ahead))
	clear(in.pieces[:])
	if in.packet == nil {
		in.hi += n
		return n, err
	}

	in.hi += n - in.take(n)
	return n, err
}

// take takes up to n bytes off rest, which have arrived, and returns how many.
func (in *inbound) take(n int) (taken int) {
	for i, piece := range in.rest {
		k := min(n-taken, len(piece))
		in.rest[i], taken = piece[k:], taken+k
	}
	return taken
}

// deliver delivers the packets that are there whole.
func (p *peer) deliver(r packet.Receiver) (found bool, err error) {
	in := &p.in
	for {
		if in.packet != nil {
			if len(in.rest[0])+len(in.rest[1]) > 0 {
				return found, nil
			}
			p.endLong(r)
			found = true
		}

		b := in.buffer[in.lo:in.hi]
		if len(b) < packet.WireOffset+4 {
			return found, nil
		}

		n := int(binary.LittleEndian.Uint32(b[packet.WireOffset:]))
		isLong := n > packet.ShortBytes

		switch {
		case n < packet.WireOffset+4 || n > longestBytes:
			return found, fmt.Errorf("it sent a packet of %d bytes", n)
		case !isLong && len(b) < n || isLong && len(b) < packet.PlacedBytes:
			return found, nil

		// It is there, or its rest goes elsewhere.
		case isLong:
			p.startLong(r, b, n)
		default:
			in.lo += n
			found = true
			r.Deliver(p.rank, b[:n], false)
		}
	}
}

// startLong makes the rest of a packet of n bytes arrive where it goes. b is what has arrived.
func (p *peer) startLong(r packet.Receiver, b []byte, n int) {
	in := &p.in
	first, b := b[:packet.PlacedBytes], b[packet.PlacedBytes:]
	in.lo += packet.PlacedBytes
	if in.rest, in.isPlaced = r.Locate(p.rank, first, n); in.isPlaced {
		in.packet = in.first[:copy(in.first[:], first)]
	} else {
		in.packet = p.pool.Take(n)
		in.rest = packet.Body{in.packet[copy(in.packet, first):]}
	}

	for i, piece := range in.rest {
		k := copy(piece, b)
		in.rest[i], b, in.lo = piece[k:], b[k:], in.lo+k
	}
}

// endLong delivers a long packet.
func (p *peer) endLong(r packet.Receiver) {
	b := p.in.packet
	p.in.packet = nil
	if isKept := r.Deliver(p.rank, b, p.in.isPlaced); !isKept && !p.in.isPlaced {
		p.pool.Return(b)
	}
}
