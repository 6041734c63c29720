package local

import (
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// mailbox is the stream of messages from one rank to another. It holds one message, by pointer;
// the sender puts the next one after the receiver has taken it. Sender and receiver write to
// different pairs of cache lines.
type mailbox struct {
	posted  interleave.Uint64 // messages put so far
	message transport.Message // the last one
	_       [64]byte
	taken   interleave.Uint64 // messages taken so far
	claim   interleave.Uint64 // P2P only: the end that has claimed the latest message
	_       [112]byte
}

// Values of claim, which only grow: the receiver views message n, or the sender has withdrawn
// it, which ends the stream.
func viewedBy(n uint64) uint64  { return 2 * n }
func withdrawn(n uint64) uint64 { return 2*n + 1 }

// mailboxes are the mailboxes of a group, by sender and receiver.
type mailboxes []interleave.Pointer[outboxes]

// outboxes are the mailboxes of one sender, by receiver.
type outboxes []interleave.Pointer[mailbox]

// get returns the mailbox of an ordered pair of ranks. Either end makes it on first use, because
// most algorithms use few pairs.
func (all mailboxes) get(from, to int) *mailbox {
	p := &all[from]
	row := p.Load()
	if row == nil {
		made := make(outboxes, len(all))
		p.CompareAndSwap(nil, &made)
		row = p.Load()
	}

	b := &(*row)[to]
	if m := b.Load(); m != nil {
		return m
	}
	b.CompareAndSwap(nil, new(mailbox))
	return b.Load()
}

// find returns the mailbox of an ordered pair of ranks, or nil if neither end has made it.
func (all mailboxes) find(from, to int) *mailbox {
	row := all[from].Load()
	if row == nil {
		return nil
	}
	return (*row)[to].Load()
}

func (ep *endpoint) Put(to int, m *transport.Message) (int, error) {
	b := ep.group.callBoxes.get(ep.Rank(), to)
	n := b.posted.Load()
	if err := ep.AwaitMessage(&b.taken, n, to); err != nil {
		return 0, err
	}
	b.message = *m
	b.posted.Store(n + 1)
	ep.WakeWaiter(to)
	return len(m.Bytes), nil
}

func (ep *endpoint) Drain(to int) error {
	b := ep.group.callBoxes.get(ep.Rank(), to)
	return ep.AwaitMessage(&b.taken, b.posted.Load(), to)
}

func (ep *endpoint) Next(from int) (transport.Message, error) {
	b := ep.group.callBoxes.get(from, ep.Rank())
	if err := ep.AwaitMessage(&b.posted, b.taken.Load()+1, from); err != nil {
		return transport.Message{}, err
	}
	return b.message, nil
}

func (ep *endpoint) Take(from int) {
	b := ep.group.callBoxes.get(from, ep.Rank())
	b.taken.Add(1)
	ep.WakeWaiter(from)
}
