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

// pair is the word that holds the offset of an ordered pair's channel.
func (ep *endpoint) pair(from, to int) *atomic.Uint64 {
	return at[atomic.Uint64](ep.arena, ep.layout.pairs+8*(from*ep.Size()+to))
}

func (ep *endpoint) slot(channelOffset int, part uint64) (*slotHeader, []byte) {
	off := channelOffset + channelHead + int(part%uint64(ep.geometry.Slots))*ep.geometry.slotBytes()
	return at[slotHeader](ep.arena, off), ep.arena.bytes(off+slotHead, ep.geometry.Slot)
}

// outbox returns the offset of this rank's channel to another, which it takes
// from the pool on first use.
func (ep *endpoint) outbox(to int) (int, error) {
	word := ep.pair(ep.Rank(), to)
	if off := word.Load(); off != 0 {
		return int(off), nil
	}
	n := ep.geometry.channelBytes()
	off := ep.layout.pool + int(at[atomic.Uint64](ep.arena, ep.layout.free).Add(uint64(n))) - n
	if off+n > ep.layout.total {
		return 0, &transport.AllocationFailedError{RequestedBytes: n, Message: fmt.Sprintf(
			"no room in the arena for messages from rank %d to rank %d: the pool of %d bytes is used up; use a larger one or an algorithm in which fewer pairs of ranks exchange messages",
			ep.Rank(), to, ep.geometry.Pool)}
	}
	word.Store(uint64(off))
	ep.group.WakeWaiter(ep.Rank(), to)
	return off, nil
}

func (ep *endpoint) Put(to int, m *transport.Message) (int, error) {
	off, err := ep.outbox(to)
	if err != nil {
		return 0, err
	}
	c := at[channel](ep.arena, off)
	part := c.posted.Load()
	if slots := uint64(ep.geometry.Slots); part >= slots {
		if err := ep.AwaitMessage(&c.taken, part-slots+1, to); err != nil {
			return 0, err
		}
	}
	h, data := ep.slot(off, part)
	n := min(len(data), len(m.Bytes))
	bulk.Copy(data, m.Bytes[:n])
	*h = slotHeader{total: uint64(m.Total), seq: m.Seq, n: uint32(n), clock: m.Clock, stream: uint32(m.Stream)}
	c.posted.Store(part + 1)
	ep.group.WakeWaiter(ep.Rank(), to)
	return n, nil
}

func (ep *endpoint) Drain(to int) error {
	off := ep.pair(ep.Rank(), to).Load()
	if off == 0 {
		return nil
	}
	c := at[channel](ep.arena, int(off))
	return ep.AwaitMessage(&c.taken, c.posted.Load(), to)
}

func (ep *endpoint) Next(from int) (transport.Message, error) {
	word := ep.pair(from, ep.Rank())
	if err := ep.AwaitMessage(word, 1, from); err != nil {
		return transport.Message{}, err
	}
	off := int(word.Load())
	c := at[channel](ep.arena, off)
	part := c.taken.Load()
	if err := ep.AwaitMessage(&c.posted, part+1, from); err != nil {
		return transport.Message{}, err
	}
	h, data := ep.slot(off, part)
	if int(h.n) > len(data) {
		return transport.Message{}, &transport.ProtocolError{Peer: from, Text: "a message part is longer than its slot"}
	}
	return transport.Message{Bytes: data[:h.n], Total: int(h.total), Seq: h.seq, Clock: h.clock, Stream: transport.Stream(h.stream)}, nil
}

func (ep *endpoint) Take(from int) {
	c := at[channel](ep.arena, int(ep.pair(from, ep.Rank()).Load()))
	c.taken.Add(1)
	ep.group.WakeWaiter(ep.Rank(), from)
}
