package ccl

import (
	"context"
	"fmt"
	"math"
)

// AnySource as the rank to receive from takes the first message, of the tag, from
// whichever rank.
const AnySource = math.MinInt

// Send sends buf to rank `to`, with a tag that is not negative. It returns when buf may
// be used again: that may be before the message has been received, or not before it is
// being received, so two ranks that are to exchange messages had better use SendRecv.
//
// Messages of one tag from one rank to another arrive in the order in which they were
// sent. They are apart from collectives, which may go on at the same time, and several
// goroutines may send and receive at once. A rank may send to itself what it receives
// by another call at the same time.
//
// Refused with *InvalidArgumentError. Fails with *CollectiveFailedError around
// *PeerLostError, *TimeoutError, the error of ctx, ErrClosed, or the group's failure.
// The group lives on, unless the message had begun to be received, or lies where the
// other rank could see it, when the time was up or ctx ended. However it ends, the other
// rank does not look at buf any more; while it copies buf, Send waits for that.
func Send[T Element](ctx context.Context, c *Communicator, buf []T, to, tag int, opts ...CallOption) error {
	_, _, err := c.exchangeMessages(ctx, message{sending: true, dtype: DTypeOf[T](), buf: bufferOf(buf), peer: to, tag: tag}, message{}, opts)
	return err
}

// Recv receives into buf a message from rank `from`, or AnySource, that was sent with
// the tag and has the type and length of buf, and returns who sent it.
//
// If the next message of the tag has another type or length Recv returns
// *MismatchError, with the field "dtype" or "count", and leaves the message to the next
// Recv. Otherwise it is refused and fails like Send; whenever it fails the contents of
// buf are unspecified.
func Recv[T Element](ctx context.Context, c *Communicator, buf []T, from, tag int, opts ...CallOption) (source int, err error) {
	source, _, err = c.exchangeMessages(ctx, message{}, message{dtype: DTypeOf[T](), buf: bufferOf(buf), peer: from, tag: tag}, opts)
	return source, err
}

// RecvBytes is Recv of bytes of which only the sender knows how many there are: it returns
// them, and who sent them. A message of more than limit bytes is a *MismatchError, with the
// field "count", and is left to the next receive.
func RecvBytes(ctx context.Context, c *Communicator, from, tag, limit int, opts ...CallOption) (data []byte, source int, err error) {
	source, data, err = c.exchangeMessages(ctx, message{}, message{dtype: Uint8, ofAny: true, most: limit, peer: from, tag: tag}, opts)
	return data, source, err
}

// SendRecv does a Send and a Recv at the same time, so that no cycle of ranks that do
// so waits for each other. send and recv are disjoint.
func SendRecv[T Element](ctx context.Context, c *Communicator, send []T, to int, recv []T, from, tag int, opts ...CallOption) (source int, err error) {
	out := message{sending: true, dtype: DTypeOf[T](), buf: bufferOf(send), peer: to, tag: tag}
	in := message{dtype: DTypeOf[T](), buf: bufferOf(recv), peer: from, tag: tag}
	if overlap(out.buf.data, in.buf.data) {
		return 0, &InvalidArgumentError{"send_recv", "send and recv overlap; they must be disjoint"}
	}
	source, _, err = c.exchangeMessages(ctx, out, in, opts)
	return source, err
}

// Isend begins a Send; see there and Work. Any number may be under way.
func Isend[T Element](ctx context.Context, c *Communicator, buf []T, to, tag int, opts ...CallOption) *Work {
	return c.beginMessage(ctx, message{sending: true, dtype: DTypeOf[T](), buf: bufferOf(buf), peer: to, tag: tag}, opts)
}

// Irecv begins a Recv; see there and Work, whose Source says who sent the message. Of
// several that fit a message the one begun first gets it.
func Irecv[T Element](ctx context.Context, c *Communicator, buf []T, from, tag int, opts ...CallOption) *Work {
	return c.beginMessage(ctx, message{dtype: DTypeOf[T](), buf: bufferOf(buf), peer: from, tag: tag}, opts)
}

// exchangeMessages makes a send, a receive, or both, and waits for them. That whose
// type is 0 is none. It returns who sent the one that was received, and what it is.
func (c *Communicator) exchangeMessages(ctx context.Context, out, in message, opts []CallOption) (source int, data []byte, err error) {
	for _, m := range [...]*message{&out, &in} {
		if err := c.checkMessage(ctx, m); err != nil {
			return 0, nil, err
		}
	}
	o := mergeCallOptions(opts)
	p := &c.post
	x, y := p.take(out, ctx, o), p.take(in, ctx, o)
	p.complete(x, y)
	for _, t := range [...]*transfer{x, y} {
		if t == nil {
			continue
		}
		if _, failed := t.state(); err == nil {
			err = failed
		}
		if !t.sending {
			source, data = t.source, t.buf.data
		}
		p.putBack(t)
	}
	if err != nil {
		return 0, nil, err
	}
	return source, data, nil
}

// beginMessage begins a transfer that somebody may wait for.
func (c *Communicator) beginMessage(ctx context.Context, m message, opts []CallOption) *Work {
	t := newTransfer()
	if err := c.checkMessage(ctx, &m); err != nil {
		t.finish(err)
		return &t.Work
	}
	o := mergeCallOptions(opts)
	t.set(m, ctx, o)
	if o.global {
		t.ranks = c.global
	}
	c.post.begin(t, false)
	return &t.Work
}

// checkMessage checks the arguments of a send or a receive.
func (c *Communicator) checkMessage(ctx context.Context, t *message) error {
	if t.dtype == 0 { // there is none
		return nil
	}
	what := t.what()
	if err := c.unmade(what); err != nil {
		return err
	}
	switch {
	case ctx == nil:
		return nilContext(what)
	case c.life.isClosed():
		return fmt.Errorf("ccl: %s on rank %d: communicator: %w", what, c.rank, ErrClosed)
	case !t.sending && t.peer == AnySource:
	case t.peer < 0 || t.peer >= c.size:
		return &InvalidArgumentError{what, fmt.Sprintf("%d is not a rank of a group of %d (0 to %d)", t.peer, c.size, c.size-1)}
	}
	if t.tag < 0 {
		return &InvalidArgumentError{what, fmt.Sprintf("the tag is %d, and must not be negative", t.tag)}
	}
	return nil
}
