package ccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/transport"
)

// message is what is asked of one end of a message: to send it, or to receive it.
type message struct {
	sending bool
	dtype   DType
	buf     Buffer
	peer    int // or AnySource
	tag     int
	ofAny   bool // a receive of a message of any length, up to most bytes: buf is made for it
	most    int
}

func (m *message) what() string {
	if m.sending {
		return "send"
	}
	return "recv"
}

// transfer is a send or a receive that is under way.
type transfer struct {
	Work
	message

	deadline time.Time // zero: none
	limit    time.Duration
	unhook   func() bool // ends the look at ctx
	begun    bool        // the other end can see some of the message
	counted  bool        // in post.works
	moved    int         // bytes
	cause    error       // a send that ends so when no other rank sees its buffer any more
	next     *transfer   // of those that are kept for later
}

func newTransfer() *transfer {
	t := new(transfer)
	t.end.L = &t.mu
	return t
}

// set makes t ready to be begun.
func (t *transfer) set(m message, ctx context.Context, o CallOption) {
	t.message = m
	t.ctx, t.limit, t.unhook = ctx, o.timeout, nil
	t.begun, t.moved, t.cause, t.source = false, 0, nil, m.peer
	t.ended, t.asked, t.err, t.done = false, false, nil, nil
}

// expect makes a buffer for a message that a receive of any length gets.
func (t *transfer) expect(total int) {
	if t.ofAny {
		t.buf.data = make([]byte, total)
	}
}

// received ends a receive that has its message.
func (t *transfer) received(from int) {
	t.mu.Lock()
	t.source = from
	t.mu.Unlock()
}

// arrival is a message that came before somebody wanted it.
type arrival struct {
	from  int
	tag   int
	dtype DType
	total int
	bytes []byte
}

// incoming is the message that a rank is sending to this one.
type incoming struct {
	to    *transfer // who gets it; nil: nobody yet
	kept  *arrival  // then it goes here; nil: no message has begun
	total int
	got   int
	over  bool // the rank was lost in the middle of a message: what still comes is the rest of it
}

// fits reports whether a receive is for messages from a rank with a tag.
func (t *transfer) fits(from, tag int) bool {
	return (t.peer == from || t.peer == AnySource) && t.tag == tag
}

// mismatch says how a message differs from what a receive expects; nil if it does not.
func (t *transfer) mismatch(me, from int, dtype DType, total int) error {
	if dtype != t.dtype {
		return &MismatchError{Field: "dtype", Values: []MismatchValue{
			{Value: "sent " + dtype.String(), Ranks: []int{from}}, {Value: "expected " + t.dtype.String(), Ranks: []int{me}},
		}}
	}
	if t.ofAny && total > t.most {
		return &MismatchError{Field: "count", Values: []MismatchValue{
			{Value: fmt.Sprintf("sent %d", total), Ranks: []int{from}}, {Value: fmt.Sprintf("expected at most %d", t.most), Ranks: []int{me}},
		}}
	}
	if !t.ofAny && total != len(t.buf.data) {
		return &MismatchError{Field: "count", Values: []MismatchValue{
			{Value: fmt.Sprintf("sent %d", total>>t.buf.shift), Ranks: []int{from}},
			{Value: fmt.Sprintf("expected %d", t.buf.Len()), Ranks: []int{me}},
		}}
	}
	return nil
}

// failedTransfer is the error of a transfer.
func (c *Communicator) failedTransfer(t *transfer, cause error) error {
	e := &CollectiveFailedError{Operation: t.what(), Rank: c.rank, Peer: -1, Group: c.name, GlobalRanks: c.global, Err: cause}
	verb, peer := "from", "any rank"
	if t.sending {
		verb = "to"
	}
	if t.peer != AnySource {
		e.Peer, peer = t.peer, fmt.Sprintf("rank %d", t.peer)
	}
	if late, ok := errors.AsType[*TimeoutError](cause); ok && len(late.Behind) == 1 {
		e.Peer = late.Behind[0]
	}
	e.Message = fmt.Sprintf("%s %s, tag %d", verb, peer, t.tag)
	if c.tell != nil {
		c.tell(c, e)
	}
	return e
}

// overdue returns why a transfer that goes on should end now, nil if it need not.
func (c *Communicator) overdue(t *transfer, now time.Time) error {
	if err := transport.ContextError(t.ctx); err != nil {
		return err
	}
	if t.deadline.IsZero() || now.Before(t.deadline) {
		return nil
	}
	late := &TimeoutError{By: c.rank, After: t.limit}
	switch t.peer {
	case c.rank:
		late.Behind = []int{t.peer}
	case AnySource:
		for r := range c.size {
			if r != c.rank {
				late.Behind = append(late.Behind, r)
			}
		}
	default:
		late.Behind = []int{c.post.lane.Behind(t.peer)}
	}
	return late
}

// failure is how a transfer's error fails the group.
func (p *post) failure(err error) *transport.Failure {
	f := &transport.Failure{Kind: transport.FailureAborted, By: p.comm.rank, Text: err.Error(), Cause: err}
	if late, ok := errors.AsType[*TimeoutError](err); ok {
		f.Kind, f.Ranks, f.After = transport.FailureStuck, late.Behind, late.After
	}
	return f
}

// groupFailure returns why the group has failed. It does not look at calls, which may
// run meanwhile.
func (p *post) groupFailure() error {
	f := p.comm.ep.Failure()
	if f.Kind != transport.FailureMismatch {
		return p.comm.cause(f)
	}
	if f.Cause != nil {
		return f.Cause
	}
	return &AbortedError{By: f.By, Cause: errors.New(f.Text)}
}

// lost returns why nobody is there for a transfer any more, nil if somebody is.
func (p *post) lost(t *transfer) error {
	if t.peer == p.comm.rank {
		return nil
	}
	if t.peer != AnySource {
		return p.lane.Lost(t.peer)
	}
	if t.begun {
		return p.lane.Lost(slices.IndexFunc(p.from, func(in incoming) bool { return in.to == t }))
	}
	var err error
	for r := range p.comm.size {
		if r != p.comm.rank {
			if err = p.lane.Lost(r); err == nil || errors.Is(err, transport.ErrClosed) {
				return err
			}
		}
	}
	return err // nil in a group of one rank
}
