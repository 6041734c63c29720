package ccl

import (
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/ccl/internal/reducer"
	"github.com/goccl/goccl/ccl/internal/verbs"
	"github.com/goccl/goccl/internal/memory"
	"github.com/goccl/goccl/transport"
)

// Call is one execution of a kernel on one rank: the task, and the verbs to do it with.
//
// Verbs block until the memory they were given may be used again. They return an error when the
// call cannot be completed; the kernel then returns that error, wrapped if that helps. After an
// error all further verbs return it, and so does the call. A Call belongs to the goroutine that
// runs it and ends when Run returns.
type Call struct {
	engine *engine
	plan   *plan
	request
	rank   int   // the call is executed for it
	places []int // displs of that rank

	pieceLo, pieceHi int                       // of the piece that is being put
	partOfPiece      func(to int) (lo, hi int) // the part of it that a rank reads

	payload bool // the view shows payloads
	view    View
	opened  bool // the call has had its view
	reducer reducer.Reducer
	scratch memory.Scratch
	message transport.Message
	clock   uint32
	moved   int    // bytes, for Traffic
	doing   string // by the verb that failed, such as "send to rank 1"
	awaited int    // the rank of that
	err     error  // the first error of a verb
}

// Rank returns the rank the call is executed for, 0 <= Rank < Size.
func (c *Call) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Call) Size() int { return c.engine.size }

// Shape returns the facts about the call that are the same on all ranks. In a mean of float16 DType
// is Float32, and lengths in bytes are those of float32, unless the kernel is AnyRunner.
func (c *Call) Shape() Shape {
	s := c.plan.shape
	s.Eager = c.payload // false if the call turned out to be in place
	return s
}

// In returns this rank's input. It must not be written unless it is also Out. In a broadcast and
// a scatter it is empty on all ranks except the root.
func (c *Call) In() Buffer { return c.in }

// Out returns this rank's output: the same memory as In where the caller works in place,
// otherwise disjoint from it; ranks may differ in that. In a reduce and a gather it is empty on
// all ranks except the root.
//
// Where an output is made of blocks, use OutBlock: there may be gaps between blocks. A rank that
// works in place has OutBlock(Rank) as its In in an all-gather and a gather, and InBlock(Rank) as
// its Out in a reduce-scatter and a scatter.
func (c *Call) Out() Buffer { return c.out }

// InBlock returns the block of this rank's input that is for another rank. It is for
// reduce-scatters, all-to-alls and, on the root, scatters. Blocks are packed, in rank order.
func (c *Call) InBlock(rank int) Buffer {
	at := c.InRange(c.rank, rank)
	return c.in.Slice(at.Lo, at.Hi)
}

// OutBlock returns the block of this rank's output that another rank fills: with its input in an
// all-gather and, on the root, a gather; with its block for this rank in an all-to-all.
func (c *Call) OutBlock(rank int) Buffer {
	at := c.OutRange(rank)
	return c.out.Slice(at.Lo, at.Hi)
}

// OutRange returns the position of OutBlock in this rank's output.
func (c *Call) OutRange(rank int) Range {
	n, at := c.length(rank, c.rank, rank), 0
	switch {
	case c.places != nil:
		at = c.places[rank]
	case c.matrix == nil && c.counts == nil:
		at = rank * n
	default:
		for r := range rank {
			at += c.length(r, c.rank, r)
		}
	}
	return Range{at, at + n}
}

// EqualBlocks reports whether all blocks of the call have the same length. It is the same on all
// ranks.
func (c *Call) EqualBlocks() bool { return c.counts == nil && c.matrix == nil }

// Native returns the collectives of the transport. Only a kernel with Kernel.Native calls it: then
// they exist, all ranks have entered the call, and each makes the same call of them. Neither a
// context nor the timeout ends it.
func (c *Call) Native() transport.Collectives { return c.engine.native }

// InRange returns the position of the block for rank `to` in the input of rank `from`. It is for
// reduce-scatters, scatters, where only the root's input has blocks, and all-to-alls.
func (c *Call) InRange(from, to int) Range {
	n := c.length(from, to, to)
	lo := to * n
	if c.matrix != nil || c.counts != nil {
		lo = 0
		for r := range to {
			lo += c.length(from, r, r)
		}
	}
	return Range{lo, lo + n}
}

// length returns the length of the block that goes from one rank to another in an all-to-all, and
// BlockLen(rank) in other collectives.
func (c *Call) length(from, to, rank int) int {
	if c.matrix != nil {
		return c.matrix.Sent(c.Size(), from, to)
	}
	return c.BlockLen(rank)
}

// BlockLen returns the length of a rank's block in elements: its input in an all-gather or a
// gather, its output in a reduce-scatter or a scatter.
func (c *Call) BlockLen(rank int) int {
	if c.counts != nil {
		return c.counts[rank]
	}
	return c.each
}

// Root returns the rank that has the input of a broadcast or a scatter, or that gets the result
// of a reduce or a gather.
func (c *Call) Root() int { return c.root }

// Scratch returns memory for n elements of the call's type, n >= 0, that belongs to this rank until
// Run returns.
//
// Its contents are unspecified. There is one such memory: a second call of Scratch returns the same
// memory, or replaces it if n is larger, so a kernel must not use the result of the first call
// after it. The communicator keeps the memory and allocates only when a call needs more than any
// before.
func (c *Call) Scratch(n int) Buffer {
	return Buffer{data: c.scratch.Bytes(n << c.out.shift), shift: c.out.shift}
}

// ParamsOf returns the parameters of the call's algorithm, as made by its Params and filled in
// from ccl.yaml. P is the type of that struct; ParamsOf panics for another type.
func ParamsOf[P any](c *Call) *P { return c.plan.shape.Params.(*P) }

// Traffic returns what this execution has cost so far: the messages on its longest chain, and the
// bytes that it has sent, or read from and stored to other ranks through a view. The conformance
// suite compares it with Kernel.Cost.
func (c *Call) Traffic() Cost { return Cost{Steps: int(c.clock), Bytes: c.moved} }

// noRank is the missing end of a one-way transfer. A kernel cannot compute it by mistake.
const noRank = math.MinInt

// Send sends b to rank `to`, which must receive the same number of elements.
func (c *Call) Send(to int, b Buffer) error {
	return c.transfer(to, b, noRank, Buffer{}, Buffer{}, false)
}

// Recv receives dst from rank `from`, which must send dst.Len elements.
func (c *Call) Recv(from int, dst Buffer) error {
	return c.transfer(noRank, Buffer{}, from, dst, Buffer{}, false)
}

// RecvReduce receives dst.Len elements from rank `from` and stores (with op received) to dst.
// with has the length of dst, and is the same memory or disjoint from it.
func (c *Call) RecvReduce(from int, dst, with Buffer) error {
	return c.transfer(noRank, Buffer{}, from, dst, with, true)
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

// Epilogue applies the operation's epilogue to b: the division of Avg. A kernel calls it exactly
// once for each element that is fully reduced: on one rank, before the element goes to others, or
// on every rank that has reduced it for itself. The verbs of a View do it themselves.
func (c *Call) Epilogue(b Buffer) { c.reducer.Epilogue(b.data) }

// Copy copies src to dst, buffers of this rank of the same length. They are the same memory or
// disjoint.
func (c *Call) Copy(dst, src Buffer) error {
	if len(dst.data) != len(src.data) {
		return c.misuse(fmt.Errorf("copy of %d elements to %d", src.Len(), dst.Len()))
	}
	if !same(dst.data, src.data) {
		copy(dst.data, src.data)
	}
	return nil
}

// Reduce stores a op b to dst, buffers of this rank of the same length. dst is the same memory as
// a or b, or disjoint from them.
func (c *Call) Reduce(dst, a, b Buffer) error {
	switch {
	case c.err != nil:
		return c.stopped(noRank, noRank)
	case len(a.data) != len(dst.data) || len(b.data) != len(dst.data):
		return c.misuse(fmt.Errorf("reduction of %d and %d elements into %d", a.Len(), b.Len(), dst.Len()))
	}

	for _, x := range [...]Buffer{a, b} {
		if !same(x.data, dst.data) && overlap(x.data, dst.data) {
			return c.misuse(errors.New("reduction of a buffer into one that overlaps it in part"))
		}
	}
	c.reducer.Pair(dst.data, a.data, b.data, nil)
	return nil
}

// transfer sends b and receives dst part by part, alternately: a part waits only for parts with
// lower numbers, so a cycle of ranks that transfer at the same time never deadlocks, however few
// bytes the transport holds.
func (c *Call) transfer(to int, b Buffer, from int, dst, with Buffer, reduce bool) error {
	if c.err != nil {
		return c.stopped(to, from)
	}
	sending, receiving := to != noRank, from != noRank
	if err := c.checkPeers(to, from); err != nil {
		return c.misuseWith(to, from, err)
	}
	if err := checkBuffers(b, dst, with, reduce); err != nil {
		return c.misuseWith(to, from, err)
	}

	if c.engine.observer != nil {
		c.observe(to, b, from, dst, reduce)
	}
	ep := c.engine.ep
	clock := c.clock
	if sending {
		clock++
	}

	sent, got := 0, 0
	for sending || receiving {
		if sending {
			c.message = transport.Message{
				Bytes: b.data[sent:], Total: len(b.data), Seq: c.engine.seq, Clock: clock,
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

	if to != noRank {
		if err := ep.Drain(to); err != nil {
			return c.lost("send to", to, err)
		}
		c.moved += len(b.data)
	}
	c.clock = max(c.clock, clock)
	return nil
}

// receive stores the next part of a message to dst[got:].
func (c *Call) receive(from int, dst, with []byte, got int, reduce bool) (int, error) {
	ep := c.engine.ep
	m, err := ep.Next(from)
	if err != nil {
		return 0, err
	}

	n := len(m.Bytes)
	switch {
	case m.Seq != c.engine.seq:
		return 0, &transport.ProtocolError{Peer: from,
			Text: fmt.Sprintf("a message of call %d in call %d", m.Seq, c.engine.seq)}
	case m.Total != len(dst) || got+n > len(dst):
		return 0, &transport.ProtocolError{Peer: from,
			Text: fmt.Sprintf("it sent %d bytes where this rank expects %d", m.Total, len(dst))}
	}

	ok := true
	if reduce {
		ok = c.reducer.Pair(dst[got:got+n], with[got:got+n], m.Bytes, ep)
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
	c.doing, c.awaited = fmt.Sprintf("%s rank %d", verb, peer), peer
	if _, found := errors.AsType[*transport.ProtocolError](err); found { // the kernels' messages do not match
		c.doing += " (" + verbs.Caller().String() + ")"
	}
	return c.fail(fmt.Errorf("%s: %w", c.doing, err))
}

// errEnded is the error of verbs between two runs of kernels.
var errEnded = errors.New("the kernel has returned from Run, after which its Call is not valid")

// stopped is the error of a verb with these peers after the call's first error.
func (c *Call) stopped(to, from int) error {
	if c.err == errEnded { //nolint:errorlint // the value itself
		return c.misuseWith(to, from, errEnded)
	}
	return c.err
}

// misuse ends a verb that the kernel calls wrongly. The error names the verb and the kernel's line.
func (c *Call) misuse(err error) error { return c.misuseWith(noRank, noRank, err) }

// misuseWith is misuse of a verb with peers, which the error names.
func (c *Call) misuseWith(to, from int, err error) error {
	text := verbs.Caller().String()
	if to != noRank {
		text += fmt.Sprintf(", to rank %d", to)
	}
	if from != noRank {
		text += fmt.Sprintf(", from rank %d", from)
	}
	return c.fail(fmt.Errorf("%s: %w", text, err))
}

// observe reports a transfer to the endpoint.
func (c *Call) observe(to int, b Buffer, from int, dst Buffer, reduce bool) {
	t := verbs.Transfer{To: verbs.None, From: verbs.None, Reduces: reduce}
	if to != noRank {
		t.To, t.Sent = to, c.partOf(b)
	}
	if from != noRank {
		t.From, t.Received = from, c.partOf(dst)
	}
	c.engine.observer.Transfer(t)
}

// partOf finds b in the buffers of the call.
func (c *Call) partOf(b Buffer) verbs.Part {
	part := verbs.Part{Buffer: "memory", Hi: b.Len()}
	for _, whole := range [...]struct {
		name string
		data []byte
	}{{"in", c.in.data}, {"out", c.out.data}, {"scratch", c.scratch}} {
		if at, ok := find(b.data, whole.data); ok {
			at >>= b.shift
			return verbs.Part{Buffer: whole.name, Lo: at, Hi: at + b.Len()}
		}
	}
	return part
}

func (c *Call) checkPeers(to, from int) error {
	for _, peer := range [...]int{to, from} {
		switch {
		case peer == noRank:
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

// fail records a verb's first error, so that a kernel that ignores it does not succeed. It
// returns err, which may be nil.
func (c *Call) fail(err error) error {
	if c.err == nil {
		c.err = err
	}
	return err
}
