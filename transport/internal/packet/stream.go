package packet

import (
	"encoding/binary"
	"math"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

const (
	// partBytes is the length in bytes of the longest part of a message.
	partBytes = 64 << 10
	// partHead is the length of what precedes a part: the message's length and its clock.
	partHead = 16
	// window is how many parts a rank sends ahead of its receiver.
	window = 4
)

// outbox is a rank's stream of messages to another one.
type outbox struct{ posted, taken interleave.Uint64 }

// inbox is a rank's stream of messages from another one. Its rank stores taken, and packets that
// arrive store the rest.
type inbox struct {
	posted, taken interleave.Uint64
	parts         [window]struct {
		packet []byte
		view   transport.Message
	}
}

// streams are those of one rank with all others: in calls, or of P2P.
type streams struct {
	in  []inbox
	out []outbox
}

func newStreams(ranks int) streams { return streams{make([]inbox, ranks), make([]outbox, ranks)} }

// hasRoom reports whether another part can be put.
func (o *outbox) hasRoom() bool { return o.posted.Load()-o.taken.Load() < window }

// putPart sends the next part of m to a rank. There is room.
func (g *group) putPart(to int, m *transport.Message, p2p bool) int {
	n := min(len(m.Bytes), partBytes)
	b := g.newPacket(head{kind: kindPart, flag: p2p, number: m.Seq}, partHead, n)
	binary.LittleEndian.PutUint64(b[headBytes:], uint64(m.Total))
	binary.LittleEndian.PutUint64(b[headBytes+8:], uint64(m.Clock))
	g.streams[streamIndex(p2p)].out[to].posted.Add(1)
	g.postPacket(to, b, Body{m.Bytes[:n]})
	return n
}

// streamIndex returns the index of the streams of calls, or of P2P.
func streamIndex(p2p bool) int {
	if p2p {
		return 1
	}
	return 0
}

// handlePart stores a part that has arrived. It keeps the packet, or copies a short one, since
// packets that arrive lie in long buffers.
func (g *group) handlePart(h head, body, packet []byte) (isKept bool, err error) {
	in := &g.streams[streamIndex(h.flag)].in[h.from]
	posted := in.posted.Load()
	if len(body) < partHead || posted-in.taken.Load() >= window {
		return false, errBadPacket
	}
	total := binary.LittleEndian.Uint64(body)
	if total > math.MaxInt || uint64(len(body)-partHead) > total {
		return false, errBadPacket
	}

	if isKept = len(packet) > ShortBytes; !isKept {
		packet = g.process.copyPacket(packet)
	}
	data := packet[headBytes+partHead:]
	p := &in.parts[posted%window]
	p.packet = packet
	p.view = transport.Message{Bytes: data[:len(data):len(data)], Total: int(total), Seq: h.number, Clock: uint32(binary.LittleEndian.Uint64(body[8:]))}
	in.posted.Store(posted + 1)
	return isKept, nil
}

// takePart gives the oldest part from a rank back.
func (g *group) takePart(from int, p2p bool) {
	in := &g.streams[streamIndex(p2p)].in[from]
	taken := in.taken.Load()
	p := &in.parts[taken%window]
	packet := p.packet
	p.packet, p.view = nil, transport.Message{}
	in.taken.Store(taken + 1)
	g.process.wire.Release(packet)
	g.postPacket(from, g.newPacket(head{kind: kindTaken, flag: p2p, number: taken + 1}, 0, 0), Body{})
}

// Put implements transport.Messages.
func (ep *Endpoint) Put(to int, m *transport.Message) (int, error) {
	out := &ep.group.streams[0].out[to]
	if posted := out.posted.Load(); posted >= window {
		if err := ep.AwaitMessage(&out.taken, posted-window+1, to); err != nil {
			return 0, err
		}
	}
	return ep.group.putPart(to, m, false), nil
}

// Drain implements transport.Messages.
func (ep *Endpoint) Drain(to int) error {
	out := &ep.group.streams[0].out[to]
	return ep.AwaitMessage(&out.taken, out.posted.Load(), to)
}

// Next implements transport.Messages.
func (ep *Endpoint) Next(from int) (transport.Message, error) {
	in := &ep.group.streams[0].in[from]
	taken := in.taken.Load()
	if err := ep.AwaitMessage(&in.posted, taken+1, from); err != nil {
		return transport.Message{}, err
	}
	return in.parts[taken%window].view, nil
}

// Take implements transport.Messages.
func (ep *Endpoint) Take(from int) { ep.group.takePart(from, false) }
