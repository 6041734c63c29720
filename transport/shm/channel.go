package shm

import (
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl/internal/bulk"
	"github.com/goccl/goccl/transport"
)

// A channel is the stream of messages of an ordered pair of ranks:
//
//	  0  posted  8   parts put so far; the sender's
//	128  taken   8   parts taken so far; the receiver's
//	256  slots       part k lies in slot k mod Slots: a header and Slot bytes
type channel struct {
	posted atomic.Uint64
	_      [120]byte
	taken  atomic.Uint64
	_      [120]byte
}

const (
	channelHead = 256
	slotHead    = 64
)

type slotHeader struct {
	total, seq       uint64
	n, clock, stream uint32
}

func (g Geometry) slotBytes() int    { return slotHead + (g.Slot+63)&^63 }
func (g Geometry) channelBytes() int { return align(channelHead + g.Slots*g.slotBytes()) }

// pair is the word that holds the offset of an ordered pair's channel, in one of the two
// tables: layout.pairs of calls, layout.lanes of lanes.
func (n *node) pair(table, from, to int) *atomic.Uint64 {
	return at[atomic.Uint64](n.arena, table+8*(from*n.layout.ranks+to))
}

// takeChannel takes a channel from the pool, for messages from one rank to another, and
// says in their word where it is.
func (n *node) takeChannel(word *atomic.Uint64, from, to int) (offset int, err error) {
	size := n.geometry.channelBytes()
	off := n.layout.pool + int(at[atomic.Uint64](n.arena, n.layout.free).Add(uint64(size))) - size
	if off+size > n.layout.total {
		return 0, &transport.AllocationFailedError{RequestedBytes: size, Message: fmt.Sprintf(
			"no room in the arena for messages from rank %d to rank %d: the pool of %d bytes is used up, of which each pair of ranks takes a part with its first message; let fewer pairs exchange messages, by another algorithm or in smaller groups, or use a larger pool",
			from, to, n.geometry.Pool)}
	}
	word.Store(uint64(off))
	return off, nil
}

func (n *node) slot(channelOffset int, part uint64) (*slotHeader, []byte) {
	off := channelOffset + channelHead + int(part%uint64(n.geometry.Slots))*n.geometry.slotBytes()
	return at[slotHeader](n.arena, off), n.arena.bytes(off+slotHead, n.geometry.Slot)
}

// write puts the next part of a message, for which there is a slot, and returns its
// length.
func (n *node) write(channelOffset int, m *transport.Message) int {
	c := at[channel](n.arena, channelOffset)
	part := c.posted.Load()
	h, data := n.slot(channelOffset, part)
	size := min(len(data), len(m.Bytes))
	bulk.Copy(data, m.Bytes[:size])
	*h = slotHeader{total: uint64(m.Total), seq: m.Seq, n: uint32(size), clock: m.Clock, stream: uint32(m.Stream)}
	c.posted.Store(part + 1)
	return size
}

// read returns a part that rank from has put.
func (n *node) read(channelOffset int, part uint64, from int) (transport.Message, error) {
	h, data := n.slot(channelOffset, part)
	if int(h.n) > len(data) {
		return transport.Message{}, &transport.ProtocolError{Peer: from, Text: "a message part is longer than its slot"}
	}
	return transport.Message{Bytes: data[:h.n], Total: int(h.total), Seq: h.seq, Clock: h.clock, Stream: transport.Stream(h.stream)}, nil
}

// outbox returns the offset of this rank's channel to another.
func (ep *endpoint) outbox(to int) (int, error) {
	word := ep.pair(ep.layout.pairs, ep.Rank(), to)
	if off := word.Load(); off != 0 {
		return int(off), nil
	}
	off, err := ep.takeChannel(word, ep.Rank(), to)
	if err == nil {
		ep.group.WakeWaiter(ep.Rank(), to)
	}
	return off, err
}

func (ep *endpoint) Put(to int, m *transport.Message) (int, error) {
	off, err := ep.outbox(to)
	if err != nil {
		return 0, err
	}
	c := at[channel](ep.arena, off)
	if part, slots := c.posted.Load(), uint64(ep.geometry.Slots); part >= slots {
		if err := ep.AwaitMessage(&c.taken, part-slots+1, to); err != nil {
			return 0, err
		}
	}
	n := ep.write(off, m)
	ep.group.WakeWaiter(ep.Rank(), to)
	return n, nil
}

func (ep *endpoint) Drain(to int) error {
	off := ep.pair(ep.layout.pairs, ep.Rank(), to).Load()
	if off == 0 {
		return nil
	}
	c := at[channel](ep.arena, int(off))
	return ep.AwaitMessage(&c.taken, c.posted.Load(), to)
}

func (ep *endpoint) Next(from int) (transport.Message, error) {
	word := ep.pair(ep.layout.pairs, from, ep.Rank())
	if err := ep.AwaitMessage(word, 1, from); err != nil {
		return transport.Message{}, err
	}
	off := int(word.Load())
	c := at[channel](ep.arena, off)
	part := c.taken.Load()
	if err := ep.AwaitMessage(&c.posted, part+1, from); err != nil {
		return transport.Message{}, err
	}
	return ep.read(off, part, from)
}

func (ep *endpoint) Take(from int) {
	c := at[channel](ep.arena, int(ep.pair(ep.layout.pairs, from, ep.Rank()).Load()))
	c.taken.Add(1)
	ep.group.WakeWaiter(ep.Rank(), from)
}
