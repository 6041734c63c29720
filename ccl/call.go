package ccl

import (
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
)

// Call is one execution of a kernel on one rank: what to do, and the verbs to do
// it with. Verbs block until the memory they were given may be used again, and
// return an error when the call cannot be completed; the kernel then returns it,
// with what it was doing if that helps. After an error all further verbs return it,
// and so does the call. A Call belongs to the goroutine that runs it and is over when
// Run returns.
type Call struct {
	comm *Communicator
	plan *plan
	request
	rank   int   // that it is executed for
	places []int // displs of that rank

	payload bool // windows show payloads
	window  View
	opened  bool // the call has had its window
	reducer reducer
	scratch scratch
	message transport.Message
	clock   uint32
	moved   int
	doing   string // what the verb that failed was doing
	err     error  // the first error of a verb
}

// Rank returns the rank the call is executed for, 0 <= Rank < Size.
func (c *Call) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Call) Size() int { return c.comm.size }

// Topology returns the kind, extents and neighbours of the group.
func (c *Call) Topology() *topology.Topology { return c.plan.shape.Topology }

// Shape returns what all ranks share of the call.
func (c *Call) Shape() Shape { return c.plan.shape }

// In returns this rank's input. It is not to be written unless it is Out. It is
// empty where only the root has one: in a broadcast and a scatter, on all ranks but
// the root.
func (c *Call) In() Buffer { return c.in }

// Out returns this rank's output: the same memory as In where the caller works
// in place, disjoint from it otherwise, and ranks may differ in that. It is empty
// where only the root has one: in a reduce and a gather, on all ranks but the root.
//
// Where an output is made of blocks, use OutBlock: between them there may be gaps. In an
// all-gather and a gather a rank that works in place has OutBlock(Rank) as its In; in a
// reduce-scatter and a scatter, InBlock(Rank) as its Out.
func (c *Call) Out() Buffer { return c.out }

// InBlock returns the block of this rank's input that is for another rank, in a
// reduce-scatter, an all-to-all and, on the root, a scatter. Blocks are packed, in
// the order of ranks.
func (c *Call) InBlock(rank int) Buffer {
	at := c.InRange(c.rank, rank)
	return c.in.Slice(at.Lo, at.Hi)
}

// OutBlock returns the place of the block of another rank in this rank's output: in an
// all-gather and, on the root, a gather, of that rank's input; in an all-to-all, of
// what it has for this one.
func (c *Call) OutBlock(rank int) Buffer {
	var at, n int
	switch {
	case c.matrix != nil:
		n = c.matrix.sent(c.Size(), rank, c.rank)
		for r := 0; r < rank && c.places == nil; r++ {
			at += c.matrix.sent(c.Size(), r, c.rank)
		}
	case c.counts != nil:
		n = c.counts[rank]
		for r := 0; r < rank && c.places == nil; r++ {
			at += c.counts[r]
		}
	default:
		n = c.each
		at = rank * n
	}
	if c.places != nil {
		at = c.places[rank]
	}
	return c.out.Slice(at, at+n)
}

// InRange returns where in the input of rank `from` the block for rank `to` lies: in a
// reduce-scatter, a scatter, where only the root's input has any, and an all-to-all.
func (c *Call) InRange(from, to int) Range {
	var lo, n int
	switch {
	case c.matrix != nil:
		n = c.matrix.sent(c.Size(), from, to)
		for r := range to {
			lo += c.matrix.sent(c.Size(), from, r)
		}
	case c.counts != nil:
		n = c.counts[to]
		for _, k := range c.counts[:to] {
			lo += k
		}
	default:
		n = c.each
		lo = to * n
	}
	return Range{lo, lo + n}
}

// BlockLen returns the length of a rank's block, in elements: of what it brings to an
// all-gather or a gather, and of what it gets from a reduce-scatter or a scatter.
func (c *Call) BlockLen(rank int) int {
	if c.counts != nil {
		return c.counts[rank]
	}
	return c.each
}

// Root returns the rank whose input a broadcast or a scatter spreads, or that gets
// the result of a reduce or a gather.
func (c *Call) Root() int { return c.root }

// Scratch returns memory for n elements of the call's type, n >= 0, that is this
// rank's alone until Run returns. What is in it is left over from other calls.
// There is one such memory: asked twice, Scratch returns the same, or moves what
// no longer fits, which a kernel must not do while it uses the first. It costs an
// allocation only where a communicator has not needed as much before, and is kept
// for later calls.
func (c *Call) Scratch(n int) Buffer {
	return Buffer{data: c.scratch.bytes(n << c.out.shift), shift: c.out.shift}
}

// ParamsOf returns the parameters of the call's algorithm, as its Params made
// them and ccl.yaml filled them. P is the struct's type; another type is a
// mistake of the kernel and panics.
func ParamsOf[P any](c *Call) *P { return c.plan.shape.Params.(*P) }

// Traffic returns what this execution has cost so far: messages on its longest
// chain, and bytes sent by this rank or, through a window, read from and stored
// to others.
func (c *Call) Traffic() Cost { return Cost{Steps: int(c.clock), Bytes: c.moved} }

// nobody stands for the missing end of a one-way transfer. It is no number that a
// kernel can come by.
const none = math.MinInt

// Send sends b to rank `to`, which has to receive as many elements.
func (c *Call) Send(to int, b Buffer) error {
	return c.transfer(to, b, none, Buffer{}, Buffer{}, false)
}

// Recv receives from rank `from`, which has to send dst.Len elements.
func (c *Call) Recv(from int, dst Buffer) error {
	return c.transfer(none, Buffer{}, from, dst, Buffer{}, false)
}

// RecvReduce receives from rank `from` and stores (with op received) to dst. with
// is as long as dst, and equal to it or disjoint.
func (c *Call) RecvReduce(from int, dst, with Buffer) error {
	return c.transfer(none, Buffer{}, from, dst, with, true)
}

// SendRecv does a Send and a Recv at the same time. b and dst are disjoint.
func (c *Call) SendRecv(to int, b Buffer, from int, dst Buffer) error {
	return c.transfer(to, b, from, dst, Buffer{}, false)
}

// SendRecvReduce does a Send and a RecvReduce at the same time. b and dst are
// disjoint.
func (c *Call) SendRecvReduce(to int, b Buffer, from int, dst, with Buffer) error {
	return c.transfer(to, b, from, dst, with, true)
}

// Epilogue applies the operation's epilogue to b: the division of Avg. A kernel
// does so exactly once for each element that is fully reduced, on one rank, before
// it goes to others; or on every rank that has reduced it for itself. A window's
// ReduceToAll does it by itself.
func (c *Call) Epilogue(b Buffer) { c.reducer.finish(b.data) }

// Copy copies src to dst, buffers of this rank of the same length. They are
// equal or disjoint.
func (c *Call) Copy(dst, src Buffer) error {
	if len(dst.data) != len(src.data) {
		return c.fail(fmt.Errorf("copy of %d elements to %d", src.Len(), dst.Len()))
	}
	if !same(dst.data, src.data) {
		copy(dst.data, src.data)
	}
	return nil
}

// Reduce stores a op b to dst, buffers of this rank of one length. dst is equal to a or
// to b, or disjoint from them.
func (c *Call) Reduce(dst, a, b Buffer) error {
	switch {
	case c.err != nil:
		return c.err
	case len(a.data) != len(dst.data) || len(b.data) != len(dst.data):
		return c.fail(fmt.Errorf("fold of %d and %d elements into %d", a.Len(), b.Len(), dst.Len()))
	}
	for _, x := range [...]Buffer{a, b} {
		if !same(x.data, dst.data) && overlap(x.data, dst.data) {
			return c.fail(errors.New("fold of a buffer into one that overlaps it in part"))
		}
	}
	c.reducer.pair(dst.data, a.data, b.data, nil)
	return nil
}

// transfer sends b and receives dst part by part, in turns: however few bytes a
// transport holds, a part waits only for parts with lower numbers, so that no
// cycle of ranks that transfer at the same time can wait for each other.
func (c *Call) transfer(to int, b Buffer, from int, dst, with Buffer, reduce bool) error {
	if c.err != nil {
		return c.err
	}
	sending, receiving := to != none, from != none
	if err := c.checkPeers(to, from); err != nil {
		return c.fail(err)
	}
	if err := checkBuffers(b, dst, with, reduce); err != nil {
		return c.fail(err)
	}
	ep := c.comm.ep
	clock := c.clock
	if sending {
		clock++
	}
	sent, got := 0, 0
	for sending || receiving {
		if sending {
			c.message = transport.Message{
				Bytes: b.data[sent:], Total: len(b.data), Seq: c.comm.seq, Clock: clock,
			}
			n, err := ep.Put(to, &c.message)
			if err != nil {
				return c.lost("send to", to, err)
			}
			sent += n
			sending = sent < len(b.data)
		}
		if receiving {
			n, err := c.receive(from, dst.data, with.data, got, reduce)
			if err != nil {
				return c.lost("receive from", from, err)
			}
			got += n
			receiving = got < len(dst.data)
		}
	}
	if to != none {
		if err := ep.Drain(to); err != nil {
			return c.lost("send to", to, err)
		}
		c.moved += len(b.data)
	}
	c.clock = max(c.clock, clock)
	return nil
}

// receive takes the next part of a message to dst[got:].
func (c *Call) receive(from int, dst, with []byte, got int, reduce bool) (int, error) {
	ep := c.comm.ep
	m, err := ep.Next(from)
	if err != nil {
		return 0, err
	}
	n := len(m.Bytes)
	switch {
	case m.Seq != c.comm.seq:
		return 0, &transport.ProtocolError{Peer: from,
			Text: fmt.Sprintf("a message of call %d in call %d", m.Seq, c.comm.seq)}
	case m.Total != len(dst) || got+n > len(dst):
		return 0, &transport.ProtocolError{Peer: from,
			Text: fmt.Sprintf("it sent %d bytes where this rank expects %d", m.Total, len(dst))}
	}
	ok := true
	if reduce {
		ok = c.reducer.pair(dst[got:got+n], with[got:got+n], m.Bytes, ep)
	} else {
		copy(dst[got:], m.Bytes)
	}
	ep.Take(from)
	if !ok {
		return 0, transport.ErrFailed
	}
	c.clock = max(c.clock, m.Clock)
	return n, nil
}

// lost ends a verb whose exchange with a peer failed.
func (c *Call) lost(verb string, peer int, err error) error {
	c.doing = fmt.Sprintf("%s rank %d", verb, peer)
	return c.fail(fmt.Errorf("%s: %w", c.doing, err))
}

func (c *Call) checkPeers(to, from int) error {
	for _, peer := range [...]int{to, from} {
		switch {
		case peer == none:
		case peer < 0 || peer >= c.Size():
			return fmt.Errorf("rank %d is not a rank of a group of %d", peer, c.Size())
		case peer == c.Rank():
			return fmt.Errorf("rank %d exchanges a message with itself", peer)
		}
	}
	return nil
}

func checkBuffers(b, dst, with Buffer, reduce bool) error {
	switch {
	case reduce && len(with.data) != len(dst.data):
		return fmt.Errorf("reduction with %d elements into %d", with.Len(), dst.Len())
	case reduce && !same(with.data, dst.data) && overlap(with.data, dst.data):
		return errors.New("reduction of a buffer into one that overlaps it in part")
	case overlap(b.data, dst.data):
		return errors.New("a buffer is sent and, at the same time, received into (two calls of Scratch return the same memory: ask for all at once, and cut it)")
	}
	return nil
}

// fail remembers a verb's first error, so that a kernel that drops it does not
// pass for successful. It returns err, which may be nil.
func (c *Call) fail(err error) error {
	if c.err == nil {
		c.err = err
	}
	return err
}
