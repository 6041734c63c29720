package local

import (
	"sync/atomic"

	"github.com/goccl/goccl/transport"
)

// mailbox is the stream of messages between an ordered pair of ranks. It holds
// one message, by pointer: the sender waits until it was taken before it puts
// the next. Sender and receiver write to different pairs of cache lines.
type mailbox struct {
	posted  atomic.Uint64     // messages put so far
	message transport.Message // the last one
	_       [64]byte
	taken   atomic.Uint64 // messages taken so far
	claim   atomic.Uint64 // of a lane: who has got the last message that is claimed
	_       [112]byte
}

// Values of claim; they only grow. The receiver views message n, or the sender has taken it
// back, which ends the stream.
func viewedBy(n uint64) uint64  { return 2 * n }
func withdrawn(n uint64) uint64 { return 2*n + 1 }

// mailboxes are those of a group, by sender and receiver.
type mailboxes []atomic.Pointer[outboxes]

// outboxes are the mailboxes of one sender, by receiver.
type outboxes []atomic.Pointer[mailbox]

// of returns the mailbox of an ordered pair, which either end makes on first use: most
// algorithms need few of the pairs that there are.
func (all mailboxes) of(from, to int) *mailbox {
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

// find is of, but makes no mailbox: it returns nil if neither end has.
func (all mailboxes) find(from, to int) *mailbox {
	row := all[from].Load()
	if row == nil {
		return nil
	}
	return (*row)[to].Load()
}

func (ep *endpoint) Put(to int, m *transport.Message) (int, error) {
	b := ep.group.callBoxes.of(ep.Rank(), to)
	n := b.posted.Load()
	if err := ep.AwaitMessage(&b.taken, n, to); err != nil {
		return 0, err
	}
	b.message = *m
	b.posted.Store(n + 1)
	ep.group.WakeWaiter(ep.Rank(), to)
	return len(m.Bytes), nil
}

func (ep *endpoint) Drain(to int) error {
	b := ep.group.callBoxes.of(ep.Rank(), to)
	return ep.AwaitMessage(&b.taken, b.posted.Load(), to)
}

func (ep *endpoint) Next(from int) (transport.Message, error) {
	b := ep.group.callBoxes.of(from, ep.Rank())
	if err := ep.AwaitMessage(&b.posted, b.taken.Load()+1, from); err != nil {
		return transport.Message{}, err
	}
	return b.message, nil
}

func (ep *endpoint) Take(from int) {
	b := ep.group.callBoxes.of(from, ep.Rank())
	b.taken.Add(1)
	ep.group.WakeWaiter(ep.Rank(), from)
}
