package ccl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/goccl/goccl/ccl/internal/p2p"
	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// AnySource as the rank to receive from accepts the first message with the tag from any rank.
//
// A rank that has left the group sends nothing more, and the receive waits for the others. Once all
// have left, or one has died, it fails with *transport.PeerLostError. Its timeout, and a warning
// after half of it (WithLogger), name the ranks that have left, and those that wait for this one.
const AnySource = p2p.AnySource

// Send sends buf to rank `to` with a tag, which must not be negative. It returns when buf may
// be used again. That may be before the message is received, or only when it is received:
// two ranks that send to each other should use SendRecv.
//
// Messages with the same tag from one rank to another arrive in the order in which they were
// sent. Messages are independent of collectives, and several goroutines may send and receive
// concurrently. A rank may send to itself if another of its calls receives the message.
//
// A wrong argument is an *InvalidArgumentError. Send fails with a *CollectiveFailedError that wraps
// *transport.PeerLostError, *transport.TimeoutError, the error of ctx, ErrClosed, or the group's
// failure. A timeout or the end of ctx fails the group only if the other rank had started to
// receive the message or could see it in shared memory. However Send ends, the other rank no longer
// reads buf; while that rank copies buf, Send waits.
func Send[T Element](ctx context.Context, c *Communicator, buf []T, to, tag int, opts ...CallOption) error {
	_, _, err := c.exchangeMessages(ctx, requestOf(true, buf, to, tag), p2p.Request{}, opts)
	return err
}

// Recv receives a message into buf from rank `from`, or from any rank if that is AnySource.
// The message must have this tag, and the type and length of buf. Recv returns the rank that
// sent it.
//
// If the next message with the tag has another type or length, Recv returns a *MismatchError with
// the field "dtype" or "count", and the message stays for the next receive. The other errors are
// those of Send. After an error the contents of buf are undefined.
func Recv[T Element](ctx context.Context, c *Communicator, buf []T, from, tag int, opts ...CallOption) (source int, err error) {
	source, _, err = c.exchangeMessages(ctx, p2p.Request{}, requestOf(false, buf, from, tag), opts)
	return source, err
}

// RecvBytes receives bytes whose number only the sender knows. It returns them and the rank
// that sent them. A message of more than limit bytes is a *MismatchError with the field
// "count", and stays for the next receive. Otherwise RecvBytes is like Recv.
func RecvBytes(ctx context.Context, c *Communicator, from, tag, limit int, opts ...CallOption) (data []byte, source int, err error) {
	in := requestOf[byte](false, nil, from, tag)
	in.AnyLength, in.MaxLength = true, limit
	source, data, err = c.exchangeMessages(ctx, p2p.Request{}, in, opts)
	return data, source, err
}

// SendRecv sends and receives at the same time, so that ranks can exchange messages in a cycle
// without a deadlock. send and recv must not overlap. Errors are those of Send and Recv.
func SendRecv[T Element](ctx context.Context, c *Communicator, send []T, to int, recv []T, from, tag int, opts ...CallOption) (source int, err error) {
	out, in := requestOf(true, send, to, tag), requestOf(false, recv, from, tag)
	if overlap(out.Data, in.Data) {
		o := mergeCallOptions(opts)
		return 0, newCallError("send_recv", &o, overlapError("send_recv", namesOf(0, opts), "disjoint"))
	}
	source, _, err = c.exchangeMessages(ctx, out, in, opts)
	return source, err
}

// Isend starts a Send and returns at once; the Work reports its end and its error. Any number of
// sends may be in progress.
func Isend[T Element](ctx context.Context, c *Communicator, buf []T, to, tag int, opts ...CallOption) *Work {
	return c.startMessage(ctx, requestOf(true, buf, to, tag), opts)
}

// Irecv starts a Recv and returns at once; the Work reports its end, its error and the rank that
// sent the message. If several receives match a message, the one started first gets it.
func Irecv[T Element](ctx context.Context, c *Communicator, buf []T, from, tag int, opts ...CallOption) *Work {
	return c.startMessage(ctx, requestOf(false, buf, from, tag), opts)
}

// exchangeMessages sends, receives, or does both, and waits.
func (c *Communicator) exchangeMessages(ctx context.Context, out, in p2p.Request, opts []CallOption) (source int, data []byte, err error) {
	what := messageName(&out) // "recv" if there is no send
	if err := c.unmade(what); err != nil {
		o := mergeCallOptions(opts)
		return 0, nil, newCallError(what, &o, err)
	}
	return c.messages.exchange(ctx, out, in, opts)
}

// startMessage starts a send or a receive.
func (c *Communicator) startMessage(ctx context.Context, r p2p.Request, opts []CallOption) *Work {
	if err := c.unmade(messageName(&r)); err != nil {
		w, o := new(Work), mergeCallOptions(opts)
		w.end.L = &w.mu
		w.finish(newCallError(messageName(&r), &o, err))
		return w
	}
	return c.messages.start(ctx, r, opts)
}

func requestOf[T Element](sending bool, buf []T, peer, tag int) p2p.Request {
	return p2p.Request{Sending: sending, Peer: peer, Tag: tag, Type: uint32(DTypeOf[T]()), Data: bufferOf(buf).data}
}

// messages is what a Communicator needs for sends and receives.
type messages struct {
	engine  *engine
	unasked *failedWorks
	moving  p2p.Engine
	started startedMessages
	mu      interleave.Mutex
	spare   *message
}

// message is a send or a receive with its Work.
type message struct {
	Work
	p2p.Transfer
	messages *messages
	opts     CallOption
	record   flight.Pending
	next     *message // in messages.spare, or in messages.started

	// Of Isend and Irecv. In other messages a caller waits.
	started bool
	what    direction
	before  *message // in messages.started
}

func (ms *messages) newMessage() *message {
	m := &message{messages: ms}
	m.engine, m.end.L = ms.engine, &m.mu
	return m
}

// takeMessage returns a message for the request r, nil if r.Type is 0, which means no request.
func (ms *messages) takeMessage(r p2p.Request, o CallOption) *message {
	if r.Type == 0 {
		return nil
	}
	ms.mu.Lock()
	m := ms.spare
	if m != nil {
		ms.spare = m.next
	}

	ms.mu.Unlock()
	if m == nil {
		m = ms.newMessage()
	}
	m.ended, m.err, m.Request, m.opts, m.record = false, nil, r, o, ms.engine.records.recordMessage(&r, o.label)
	m.Owner = m
	return m
}

func (ms *messages) putBack(m *message) {
	m.Request = p2p.Request{} // the buffer is the caller's again
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.next, ms.spare = ms.spare, m
}

// transfer returns nil for nil.
func (m *message) transfer() *p2p.Transfer {
	if m == nil {
		return nil
	}
	return &m.Transfer
}

// exchange sends, receives, or does both, and waits. A request with Type 0 means none. It
// returns the source and the data of the message received.
func (ms *messages) exchange(ctx context.Context, out, in p2p.Request, opts []CallOption) (source int, data []byte, err error) {
	o := mergeCallOptions(opts)
	what := messageName(&out) // "recv" if there is no send
	if err := ms.engine.holds.holdFor(what); err != nil {
		return 0, nil, newCallError(what, &o, err)
	}
	defer ms.engine.holds.drop() //nolint:errcheck // Close has returned already

	for _, r := range [...]*p2p.Request{&out, &in} {
		if r.Type == 0 {
			continue
		}
		if err := ms.checkMessage(ctx, r, o); err != nil {
			return 0, nil, newCallError(messageName(r), &o, err)
		}
	}

	send, recv := ms.takeMessage(out, o), ms.takeMessage(in, o)
	ms.moving.Exchange(send.transfer(), recv.transfer())
	if send != nil {
		err = send.outcome()
		ms.putBack(send)
	}

	if recv != nil {
		received := recv.outcome()
		source, data = recv.From, recv.Data
		ms.putBack(recv)
		if err == nil {
			err = received
		}
	}
	if err != nil {
		return 0, nil, err
	}
	return source, data, nil
}

// outcome waits until a message has ended and returns its error.
func (m *message) outcome() error {
	cause := m.await(context.Background()) // its own context and timeout end it
	if cause == nil {
		return nil
	}
	return m.failed(cause)
}

// start starts a send or a receive that no caller need wait for.
func (ms *messages) start(ctx context.Context, r p2p.Request, opts []CallOption) *Work {
	m, o := ms.newMessage(), mergeCallOptions(opts)
	err := ms.engine.holds.holdFor(messageName(&r))
	if err == nil {
		defer ms.engine.holds.drop() //nolint:errcheck // Close has returned already
		err = ms.checkMessage(ctx, &r, o)
	}
	if err != nil {
		m.finish(newCallError(messageName(&r), &o, err))
		return &m.Work
	}

	m.opts = ms.engine.asynchronous(o)
	m.Request, m.Owner, m.source = r, m, r.Peer
	m.started, m.what = true, direction{r.Sending, r.Peer, r.Tag}
	if o.torch {
		m.ranks = ms.engine.global
	}
	m.record = ms.engine.records.recordMessage(&r, o.label)

	if ms.engine.isDebug && r.Sending {
		m.sums = sums{on: true, inputs: m.sum(Buffer{data: r.Data})}
	}
	ms.started.add(m)
	ms.moving.Start(&m.Transfer)
	return &m.Work
}

// checkMessage checks the arguments of a send or a receive, and completes its request. The caller
// holds the communicator until it has the error of the message, which is recorded meanwhile.
func (ms *messages) checkMessage(ctx context.Context, r *p2p.Request, o CallOption) error {
	what := messageName(r)
	switch {
	case ctx == nil:
		return nilContext(what)
	case o.work != nil:
		return notAsynchronous(what)
	case !r.Sending && r.Peer == AnySource:
	case ms.engine.isOutside(r.Peer, o):
		return &InvalidArgumentError{what, "the other rank " + ms.engine.outside()}
	case r.Peer < 0 || r.Peer >= ms.engine.size:
		return &InvalidArgumentError{what, fmt.Sprintf("%d is not a rank of a group of %d (0 to %d)", r.Peer, ms.engine.size, ms.engine.size-1)}
	}

	if r.Tag < 0 {
		return &InvalidArgumentError{what, fmt.Sprintf("the tag is %d, and must not be negative", r.Tag)}
	}
	if ms.engine.isDebug && r.Sending {
		if err := checkBools(what, DType(r.Type), Buffer{data: r.Data}); err != nil {
			return err
		}
	}
	if r.Ctx, r.Timeout = ctx, ms.engine.selector.Timeout(); o.timeout != 0 {
		r.Timeout = ms.engine.limitOf(o.timeout).After
	}
	return nil
}

func messageName(r *p2p.Request) string {
	if r.Sending {
		return "send"
	}
	return "recv"
}

// Ended implements p2p.Owner. The error of a message that a caller waits for is made by the caller,
// who knows where it was called.
func (m *message) Ended(cause error) {
	m.messages.engine.records.recordMessageEnd(m, cause)
	err := cause

	if m.started {
		if cause != nil {
			err = m.failed(cause)
		} else if m.sums.on && m.sum(Buffer{data: m.Data}) != m.sums.inputs {
			err = newCallError("send", &m.opts, changed("send", "before the message was received"))
		}

		m.messages.unasked.noteFailed(&m.Work, err)
		defer m.messages.started.remove(m) // once its Work has ended: until then Drain and Close count it
		m.Ctx = nil
		if err == nil {
			m.mu.Lock()
			m.source = m.From
			m.mu.Unlock()
		}
	}
	m.finish(err)
}

// Warn implements p2p.Owner.
func (m *message) Warn(departed, waiting []int) {
	j := &m.messages.engine.journal
	if !j.logs(slog.LevelWarn) {
		return
	}
	text := "a receive from any rank has waited for half of its timeout"
	if m.Timeout < 0 {
		text = "a receive from any rank that has no timeout still waits"
	}
	j.log(slog.LevelWarn, text, "tag", m.Tag, "label", m.opts.label, "left", departed, "waiting", waiting)
}

// failed returns the error of a send or a receive because of cause.
func (m *message) failed(cause error) *CallError {
	g := m.messages.engine
	e := &CollectiveFailedError{
		Operation: messageName(&m.Request), Rank: g.rank, Peer: -1, Awaited: -1, Group: g.name, GlobalRanks: g.global, Err: cause,
	}
	if m.Peer != AnySource {
		e.Peer = m.Peer
	}

	if m.Waits && (!m.started || m.isAwaited()) {
		e.Awaited = e.Peer
	}

	about := failure.WithoutCause(cause)
	if mismatch, ok := errors.AsType[*p2p.MismatchError](about); ok {
		e.Err = m.mismatch(mismatch)
	}
	late, _ := errors.AsType[*transport.TimeoutError](about)
	if late != nil && len(late.Behind) == 1 {
		e.Peer = late.Behind[0]
	}

	if lost, ok := errors.AsType[*transport.PeerLostError](about); ok {
		e.Last = g.records.lastCalls([]int{lost.Rank}, 0, true)
	} else if late != nil {
		e.Last = g.records.lastCalls(slices.Concat(late.Missing, late.Behind), 0, false)
	}

	e.Message = direction{m.Sending, m.Peer, m.Tag}.String()
	if len(m.Others) > 0 {
		e.Message += fmt.Sprintf(" (messages of tags %d have come)", m.Others)
	}
	if m.Sending && late != nil && late.By == g.rank && slices.ContainsFunc(e.Last, func(l LastCall) bool { return l.standing.isSender }) {
		e.Message += " (ranks that send to each other use SendRecv, or Isend)"
	}
	if late != nil && late.By != g.rank && e.Awaited >= 0 {
		e.Message += fmt.Sprintf(": rank %d waited for rank %d when the group failed", g.rank, e.Awaited)
	}

	g.records.noteFlight()
	call := newCallError(e.Operation, &m.opts, e)
	if call.DType = DType(m.Type); !m.AnyLength {
		call.Count = len(m.Data) / call.DType.Size()
	} else {
		call.DType = 0
	}
	g.journal.logFailure(g.failures.notify(call))
	return call
}

// mismatch returns the error of a receive whose message has another type or length.
func (m *message) mismatch(got *p2p.MismatchError) *MismatchError {
	dtype := DType(m.Type)
	field, sent, expected := "count", "", ""
	switch {
	case got.Type != m.Type:
		field, sent, expected = "dtype", DType(got.Type).String(), dtype.String()
	case m.AnyLength:
		sent, expected = fmt.Sprint(got.Len), fmt.Sprint("at most ", m.MaxLength)
	default:
		sent, expected = fmt.Sprint(got.Len/dtype.Size()), fmt.Sprint(len(m.Data)/dtype.Size())
	}

	return &MismatchError{Field: field, Values: []MismatchValue{
		{Value: "sent " + sent, Ranks: []int{got.From}}, {Value: "expected " + expected, Ranks: []int{m.messages.engine.rank}},
	}}
}

// p2pGroup is an engine as the p2p.Engine beside it sees it.
type p2pGroup struct{ engine *engine }

func (g p2pGroup) Closed() bool               { return g.engine.holds.life.State().Closed() }
func (g p2pGroup) FailureCause() error        { return g.engine.failures.cause(g.engine.ep.Failure()) }
func (g p2pGroup) Hosts(ranks []int) []string { return g.engine.failures.hosts(ranks) }
func (g p2pGroup) Fault(v any) error          { return g.engine.faults.fault(v) }
func (g p2pGroup) Release()                   { _ = g.engine.holds.drop() } // Close has returned already
