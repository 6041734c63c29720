package shm

import (
	"fmt"
	"math"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/memmove"
	"github.com/goccl/goccl/transport"
)

// A channel is the stream of messages from one rank to another:
//
//	  0  posted  8   parts put so far; written by the sender
//	128  taken   8   parts taken so far; written by the receiver
//	256  slots       slot k mod Slots holds part k: a header and Slot bytes
type channel struct {
	posted interleave.Uint64
	_      [120]byte
	taken  interleave.Uint64
	_      [120]byte
}

const (
	channelHead = 256
	slotHead    = 64
)

type slotHeader struct {
	total, seq uint64
	n, clock   uint32
}

func (g Geometry) slotBytes() int    { return slotHead + (g.Slot+63)&^63 }
func (g Geometry) channelBytes() int { return align(channelHead + g.Slots*g.slotBytes()) }

// pair returns the word with the offset of an ordered pair's channel. table is layout.pairs for
// messages of calls and layout.p2pPairs for P2P messages.
func (n *node) pair(table, from, to int) *interleave.Uint64 {
	return at[interleave.Uint64](n.arena, table+8*(from*n.layout.ranks+to))
}

// takeChannel takes a channel from the pool for messages from one rank to another, and stores
// its offset in word.
func (n *node) takeChannel(word *interleave.Uint64, from, to int) (offset int, err error) {
	size := n.geometry.channelBytes()
	off := n.layout.pool + int(at[interleave.Uint64](n.arena, n.layout.free).Add(uint64(size))) - size
	if off < n.layout.pool {
		return 0, n.overwritten(from, "how much of the pool is taken", off)
	}
	if off > n.layout.total-size {
		return 0, &transport.AllocationFailedError{RequestedBytes: size, Message: fmt.Sprintf(
			"no room in the arena for messages from rank %d to rank %d: the pool of %d bytes is used up; each pair of ranks takes a part of it with its first message; let fewer pairs exchange messages, by another algorithm or in smaller groups, or use a larger pool",
			from, to, n.geometry.Pool)}
	}
	word.Store(uint64(off))
	return off, nil
}

// channelAt returns the offset of a pair's channel, or 0 if it has none. Any rank may have
// overwritten the word; channelAt panics with a *transport.ProtocolError if the offset is
// invalid.
func (n *node) channelAt(word *interleave.Uint64, peer int) int {
	off := word.Load()
	if off == 0 {
		return 0
	}
	pool, size := uint64(n.layout.pool), uint64(n.geometry.channelBytes())
	if off < pool || off > uint64(n.layout.total)-size || (off-pool)%size != 0 {
		panic(n.overwritten(peer, "where its messages go", int(off)))
	}
	return int(off)
}

// overwritten returns the error for a word with a value that no rank writes.
func (n *node) overwritten(peer int, what string, value int) *transport.ProtocolError {
	return &transport.ProtocolError{Peer: peer, Text: fmt.Sprintf("the group's memory was overwritten: the word for %s is %#x", what, value)}
}

func (n *node) slot(channelOffset int, part uint64) (*slotHeader, []byte) {
	off := channelOffset + channelHead + int(part%uint64(n.geometry.Slots))*n.geometry.slotBytes()
	return at[slotHeader](n.arena, off), n.arena.bytes(off+slotHead, n.geometry.Slot)
}

// write puts the next part of a message and returns the part's length. A slot must be free.
func (n *node) write(channelOffset int, m *transport.Message) int {
	c := at[channel](n.arena, channelOffset)
	part := c.posted.Load()
	h, data := n.slot(channelOffset, part)
	size := min(len(data), len(m.Bytes))
	memmove.Copy(data, m.Bytes[:size])
	*h = slotHeader{total: uint64(m.Total), seq: m.Seq, n: uint32(size), clock: m.Clock}
	c.posted.Store(part + 1)
	return size
}

// read returns a part that rank from has put. It views the slot.
func (n *node) read(channelOffset int, part uint64, from int) (transport.Message, error) {
	shared, data := n.slot(channelOffset, part)
	h := *shared // one copy, since the sender could change it
	if int(h.n) > len(data) {
		return transport.Message{}, &transport.ProtocolError{Peer: from, Text: "a message part is longer than its slot"}
	}
	if h.total > math.MaxInt || uint64(h.n) > h.total {
		return transport.Message{}, &transport.ProtocolError{Peer: from,
			Text: fmt.Sprintf("a message part of %d bytes is longer than its message, of %d", h.n, int64(h.total))}
	}
	return transport.Message{Bytes: data[:h.n], Total: int(h.total), Seq: h.seq, Clock: h.clock}, nil
}

// outbox returns the offset of this rank's channel to another.
func (ep *endpoint) outbox(to int) (int, error) {
	word := ep.pair(ep.layout.pairs, ep.Rank(), to)
	if off := ep.channelAt(word, to); off != 0 {
		return off, nil
	}
	off, err := ep.takeChannel(word, ep.Rank(), to)
	if err == nil {
		ep.WakeWaiter(to)
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
	ep.WakeWaiter(to)
	return n, nil
}

func (ep *endpoint) Drain(to int) error {
	off := ep.channelAt(ep.pair(ep.layout.pairs, ep.Rank(), to), to)
	if off == 0 {
		return nil
	}
	c := at[channel](ep.arena, off)
	return ep.AwaitMessage(&c.taken, c.posted.Load(), to)
}

func (ep *endpoint) Next(from int) (transport.Message, error) {
	word := ep.pair(ep.layout.pairs, from, ep.Rank())
	if err := ep.AwaitMessage(word, 1, from); err != nil {
		return transport.Message{}, err
	}
	off := ep.channelAt(word, from)
	c := at[channel](ep.arena, off)
	part := c.taken.Load()
	if err := ep.AwaitMessage(&c.posted, part+1, from); err != nil {
		return transport.Message{}, err
	}
	return ep.read(off, part, from)
}

func (ep *endpoint) Take(from int) {
	c := at[channel](ep.arena, ep.channelAt(ep.pair(ep.layout.pairs, from, ep.Rank()), from))
	c.taken.Add(1)
	ep.WakeWaiter(from)
}
