package ccl

import (
	"context"
	"errors"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/transport"
)

// post is where a rank's messages come and go, apart from its collectives. Transfers
// that cannot be completed at once are in its lists. As long as there are any, one
// goroutine drives: it moves what can be moved on the endpoint's lane and rests while
// nothing can. Who waits for a transfer drives, unless somebody does already, and hands
// on to a goroutine of its own what is left over in the end.
type post struct {
	comm  *Communicator
	lane  transport.P2P
	ready func() bool // whether something could be moved, which it does

	mu      sync.Mutex
	driving bool
	stopped bool // the communicator is closed: the driver drops the post's hold
	dead    error
	sends   [][]*transfer     // by receiver, in order
	recvs   []*transfer       // in order
	from    []incoming        // by sender
	early   []*arrival        // messages that nobody wanted yet, in the order in which they came
	works   counters          // of those that have a Work
	message transport.Message // the part that is put
	turn    int               // whose messages AnySource looks at first
	spare   *transfer
	timer   *time.Timer
	armed   time.Time       // when it fires; zero: it does not
	doubt   bool            // somebody may be gone
	late    bool            // the lane shows that the time of the last transfer was up
	moves   uint            // that the driver has made
	home    context.Context // whose end wakes the driver in any case; a pointer, since others may not be comparable
	leave   func() bool     // ends that
}

func (p *post) init(c *Communicator) {
	p.comm, p.lane = c, c.ep.P2P()
	p.ready = func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.move()
	}
}

// take begins a transfer that somebody waits for; nil, if there is no message.
func (p *post) take(m message, ctx context.Context, o CallOption) *transfer {
	if m.dtype == 0 {
		return nil
	}
	p.mu.Lock()
	t := p.spare
	if t != nil {
		p.spare = t.next
	}
	p.mu.Unlock()
	if t == nil {
		t = newTransfer()
	}
	t.set(m, ctx, o)
	p.begin(t, true)
	return t
}

func (p *post) putBack(t *transfer) {
	t.ctx, t.buf = nil, Buffer{}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.next, p.spare = p.spare, t
}

// begin enters a transfer, which somebody waits for or not.
func (p *post) begin(t *transfer, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refuses(t); err != nil {
		if !waits {
			p.comm.noteFailed(&t.Work, err)
		}
		t.finish(err)
		return
	}
	if p.sends == nil {
		p.sends, p.from = make([][]*transfer, p.comm.size), make([]incoming, p.comm.size)
	}
	if p.late {
		p.comeBack()
	}
	p.limit(t)
	p.enter(t)
	if ended, err := t.state(); !waits && ended {
		p.comm.noteFailed(&t.Work, err)
	} else if !waits {
		t.counted = true
		p.works.of(t).Add(1)
	}
	p.doubt = p.doubt || !t.isOver() && p.doubts(t)
	switch {
	case p.driving:
		p.lane.Wake() // to look at the lists anew
	case !waits && p.pending():
		p.driving = true
		go p.drive(nil, nil)
	}
}

// comeBack ends what the lane shows of a wait that was given up: this rank makes a call again.
func (p *post) comeBack() {
	if p.comm.guard != nil {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { p.doubt = p.doubt || recover() != nil }() // memory has vanished: the driver will see
	}
	p.late = false
	if !p.driving { // else the driver does
		p.lane.WaitFor(-1)
	}
}

// doubts reports whether nobody may be there for a transfer any more.
func (p *post) doubts(t *transfer) (yes bool) {
	if p.comm.guard != nil {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { yes = yes || recover() != nil }() // memory has vanished: the driver will see
	}
	return p.lost(t) != nil
}

// limit says when a transfer ends at the latest.
func (p *post) limit(t *transfer) {
	if t.limit == 0 {
		t.limit = p.comm.selector.Timeout()
	}
	t.limit, t.deadline = max(t.limit, 0), time.Time{}
	if t.limit > 0 {
		now := time.Now()
		t.deadline = now.Add(t.limit)
		p.arm(t.deadline, now)
	}
}

// wake makes the driver look at everything anew.
func (p *post) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.lane.Wake()
	}
}

// enter puts a transfer on its list, unless it can be completed at once.
func (p *post) enter(t *transfer) {
	switch {
	case t.sending && t.peer == p.comm.rank && p.toSelf(t), !t.sending && p.fromEarly(t):
		return
	case t.sending:
		p.sends[t.peer] = append(p.sends[t.peer], t)
	default:
		p.recvs = append(p.recvs, t)
		if p.fromSelf(t) {
			return
		}
	}
	switch ctx := t.ctx; {
	case ctx.Done() == nil || ctx == p.home:
	case p.home == nil && reflect.TypeOf(ctx).Kind() == reflect.Pointer: // most calls have the same
		p.home, p.leave = ctx, context.AfterFunc(ctx, p.wake)
	default:
		t.unhook = context.AfterFunc(ctx, p.wake)
	}
}

// refuses says why there is no new transfer.
func (p *post) refuses(t *transfer) error {
	switch err := transport.ContextError(t.ctx); {
	case p.stopped:
		return p.comm.failedTransfer(t, ErrClosed)
	case p.dead != nil:
		return p.comm.failedTransfer(t, p.dead)
	case err != nil:
		return p.comm.failedTransfer(t, err)
	}
	return nil
}

// complete returns when both transfers have ended; either may be nil.
func (p *post) complete(t, u *transfer) {
	p.mu.Lock()
	mine := !p.driving && !(t.isOver() && u.isOver())
	if mine {
		p.driving = true
	}
	p.mu.Unlock()
	if mine {
		p.drive(t, u)
	}
	for _, x := range [...]*transfer{t, u} {
		if x != nil {
			_ = x.Wait(context.Background()) // it has a deadline
		}
	}
}

// isOver reports whether a transfer has ended, or is none.
func (t *transfer) isOver() bool {
	if t == nil {
		return true
	}
	ended, _ := t.state()
	return ended
}

// drive moves messages until both transfers have ended, or, if there are none of these,
// until there is no other.
func (p *post) drive(t, u *transfer) {
	for !p.driven(t, u) {
	}
}

// driven is drive, but returns false if memory has vanished; that is the end of the group,
// which all transfers are to know.
func (p *post) driven(t, u *transfer) (done bool) {
	if guard := p.comm.guard; guard != nil {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if v := recover(); v != nil {
				p.vanished(v)
			}
		}()
	}
	patient := t == nil && u == nil
	for p.goOn(t, u) {
		before := p.moves
		p.lane.Rest(p.ready, patient)
		if p.moves == before || p.moves%examineEvery == 0 {
			p.look()
		}
	}
	return true
}

// examineEvery is how many moves a driver makes, as long as it finds one after the
// other, before it looks at deadlines.
const examineEvery = 256

// vanished fails the group if v, which was recovered, comes of its memory.
func (p *post) vanished(v any) {
	err := p.comm.fault(v)
	if err == nil {
		panic(v)
	}
	p.comm.ep.Fail(p.failure(err))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubt = true
}

// look examines the transfers.
func (p *post) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.examine()
}

// goOn reports whether the driver has to go on; if not, it is the driver no more.
func (p *post) goOn(t, u *transfer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doubt {
		p.doubt = false
		p.examine()
	}
	left := p.pending()
	if t == nil && u == nil {
		if left {
			p.late = false
			p.lane.WaitFor(p.first())
			return true
		}
	} else if sent, got := t.isOver(), u.isOver(); !sent || !got {
		if got {
			u = t
		}
		p.late = false
		p.lane.WaitFor(max(u.peer, -1))
		return true
	} else if left {
		go p.drive(nil, nil)
		return false
	}
	if !p.late { // or others that wait for this rank see for whom it waited, until its next call
		p.lane.WaitFor(-1)
	}
	p.driving = false
	if p.stopped {
		_ = p.comm.drop() // the post's hold; Close has returned already
	}
	return false
}

// first returns the rank that the first transfer is with, receives first; -1 if there is none,
// or it may be with any.
func (p *post) first() int {
	if len(p.recvs) > 0 {
		return max(p.recvs[0].peer, -1)
	}
	for to, queue := range p.sends {
		if len(queue) > 0 {
			return to
		}
	}
	return -1
}

// pending reports whether there is something to move.
func (p *post) pending() bool {
	if len(p.recvs) > 0 {
		return true
	}
	for _, queue := range p.sends {
		if len(queue) > 0 {
			return true
		}
	}
	for i := range p.from {
		if p.from[i].to != nil {
			return true
		}
	}
	return false
}

// stop ends all transfers; the communicator is closed. It reports whether a driver does
// that, which then drops the post's hold of the endpoint (rule driverKeeps).
func (p *post) stop() (driving bool) {
	if p.mu.TryLock() {
		return p.halt()
	}
	go func() { // a long message may be being copied, and Close does not wait
		p.mu.Lock()
		if !p.halt() {
			_ = p.comm.drop()
		}
	}()
	return true
}

// halt is stop for who holds the lock, which it gives back.
func (p *post) halt() (driving bool) {
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.leave != nil {
		p.leave()
	}
	if p.driving {
		p.lane.Wake()
	} else if p.pending() { // those who wait for it do not drive yet
		p.driving = true
		go p.drive(nil, nil)
	}
	return p.driving
}

// move moves what can be moved now, and reports whether something was. The lock is
// held.
func (p *post) move() (moved bool) {
	for to, queue := range p.sends {
		if len(queue) > 0 && to != p.comm.rank && p.send(queue[0]) {
			moved = true
		}
	}
	if p.dead != nil {
		return moved
	}
	for i := 0; i < len(p.recvs); i++ {
		t := p.recvs[i]
		before := len(p.recvs)
		if t.peer != AnySource {
			moved = p.recv(t.peer) || moved
		} else {
			for k := 0; k < p.comm.size && len(p.recvs) == before; k++ {
				p.turn = (p.turn + 1) % p.comm.size
				moved = p.recv(p.turn) || moved
			}
		}
		if len(p.recvs) != before {
			i = -1 // the list is another one now
		}
	}
	for from := range p.from {
		if p.from[from].to != nil {
			moved = p.recv(from) || moved
		}
	}
	if moved {
		p.moves++
	}
	return moved
}

// send moves the next part of a message.
func (p *post) send(t *transfer) (moved bool) {
	if t.cause != nil {
		return p.withdraw(t, t.cause)
	}
	if t.begun && t.moved == len(t.buf.data) {
		if !p.lane.TryDrained(t.peer) {
			return false
		}
		p.ended(t, nil)
		return true
	}
	p.message = transport.Message{
		Bytes: t.buf.data[t.moved:], Total: len(t.buf.data), Seq: uint64(t.tag), Clock: uint32(t.dtype),
	}
	n, ok, err := p.lane.TryPut(t.peer, &p.message)
	switch {
	case err != nil:
		p.ended(t, p.comm.failedTransfer(t, err))
		return true
	case !ok:
		return false
	}
	t.begun = true
	t.moved += n
	if t.moved == len(t.buf.data) && p.lane.TryDrained(t.peer) {
		p.ended(t, nil)
	}
	return true
}

// recv moves the next part of the message that a rank is sending, if anybody wants it.
func (p *post) recv(from int) (moved bool) {
	in := &p.from[from]
	if from == p.comm.rank || in.over {
		return false
	}
	for {
		m, ok, err := p.lane.TryNext(from)
		switch {
		case err != nil:
			p.fail(err)
			return true
		case !ok:
			return moved
		}
		moved = true
		if in.to == nil && in.kept == nil {
			p.address(in, from, &m)
		}
		if in.got+len(m.Bytes) > in.total {
			p.lane.Take(from)
			p.fail(&transport.ProtocolError{Peer: from, Text: "a message is longer than it said"})
			return true
		}
		if in.to != nil {
			copy(in.to.buf.data[in.got:], m.Bytes)
		} else {
			in.kept.bytes = append(in.kept.bytes, m.Bytes...)
		}
		in.got += len(m.Bytes)
		p.lane.Take(from)
		if in.got < in.total {
			continue
		}
		t := in.to
		kept := in.kept
		*in = incoming{}
		if t != nil {
			t.received(from)
			p.ended(t, nil)
			return true
		}
		p.keep(kept)
		if !p.wanted(from) {
			return true
		}
	}
}

// keep keeps a message for the receive that fits, which may have begun since.
func (p *post) keep(a *arrival) {
	p.early = append(p.early, a)
	for i := 0; i < len(p.recvs); i++ {
		if t := p.recvs[i]; t.fits(a.from, a.tag) {
			p.fromEarly(t) // there is no other that fits: it would have got that
			if _, err := t.state(); err == nil {
				return
			}
			i-- // it has ended, and its place is another's
		}
	}
}

// address finds who gets the message that begins with m.
func (p *post) address(in *incoming, from int, m *transport.Message) {
	tag, dtype := int(m.Seq), DType(m.Clock)
	in.total = m.Total
	for i := 0; i < len(p.recvs); i++ {
		t := p.recvs[i]
		if !t.fits(from, tag) {
			continue
		}
		if err := t.mismatch(p.comm.rank, from, dtype, m.Total); err != nil {
			p.ended(t, p.comm.failedTransfer(t, err))
			i--
			continue
		}
		p.recvs = append(p.recvs[:i], p.recvs[i+1:]...)
		t.expect(m.Total)
		t.begun = true
		in.to = t
		return
	}
	in.kept = &arrival{from: from, tag: tag, dtype: dtype, total: m.Total, bytes: make([]byte, 0, min(m.Total, keptAtOnce))}
}

// keptAtOnce is for how many bytes of a message there is memory before they have come: what
// it says of its length may be wrong.
const keptAtOnce = 64 << 20

// wanted reports whether somebody waits for a message from a rank.
func (p *post) wanted(from int) bool {
	for _, t := range p.recvs {
		if t.peer == from || t.peer == AnySource {
			return true
		}
	}
	return false
}

// fromEarly ends a receive, which need be on no list, with the first message that fits of
// those that have come before it.
func (p *post) fromEarly(t *transfer) (ended bool) {
	for i, a := range p.early {
		if !t.fits(a.from, a.tag) {
			continue
		}
		err := t.mismatch(p.comm.rank, a.from, a.dtype, a.total)
		if err == nil {
			t.expect(a.total)
			copy(t.buf.data, a.bytes)
			p.early = slices.Delete(p.early, i, i+1)
			t.received(a.from)
		} else {
			err = p.comm.failedTransfer(t, err)
		}
		p.ended(t, err)
		return true
	}
	return false
}

// toSelf gives a message of this rank to a receive of its own.
func (p *post) toSelf(t *transfer) (ended bool) {
	for i := 0; i < len(p.recvs); i++ {
		switch r := p.recvs[i]; {
		case !r.fits(p.comm.rank, t.tag):
		case p.hand(r, t):
			t.finish(nil)
			return true
		default:
			i-- // it has ended, and its place is another's
		}
	}
	return false
}

// fromSelf gives a receive, the last in the list, a message of this rank.
func (p *post) fromSelf(r *transfer) (ended bool) {
	for _, t := range p.sends[p.comm.rank] {
		if r.fits(p.comm.rank, t.tag) {
			if p.hand(r, t) {
				p.ended(t, nil)
			}
			return true
		}
	}
	return false
}

// hand copies a message of this rank, and ends the receive. It reports whether the
// message has been received.
func (p *post) hand(r, t *transfer) bool {
	if err := r.mismatch(p.comm.rank, p.comm.rank, t.dtype, len(t.buf.data)); err != nil {
		p.ended(r, p.comm.failedTransfer(r, err))
		return false
	}
	r.expect(len(t.buf.data))
	copy(r.buf.data, t.buf.data)
	r.received(p.comm.rank)
	p.ended(r, nil)
	return true
}

// ended takes a transfer off its list.
func (p *post) ended(t *transfer, err error) {
	list := p.recvs
	if t.sending {
		list = p.sends[t.peer]
	}
	for i := range list {
		if list[i] == t {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if t.sending {
		p.sends[t.peer] = list
	} else {
		p.recvs = list
	}
	if t.unhook != nil {
		t.unhook()
		t.unhook = nil
	}
	if t.counted {
		t.counted = false
		p.works.of(t).Add(-1)
		p.comm.noteFailed(&t.Work, err)
	}
	t.finish(err)
}

// each calls f for all transfers there are; f may end the one it is called for, or all:
// one that has ended is not looked at any more, since it may be somebody else's.
func (p *post) each(f func(t *transfer)) {
	var all []*transfer
	for _, queue := range p.sends {
		all = append(all, queue...)
	}
	all = append(all, p.recvs...)
	for i := range p.from {
		if t := p.from[i].to; t != nil {
			all = append(all, t)
		}
	}
	for _, t := range all {
		if !t.isOver() {
			f(t)
		}
	}
}

// examine looks for what ends transfers before their time.
func (p *post) examine() {
	switch {
	case p.stopped || p.comm.life.isClosed():
		p.end(ErrClosed)
		return
	case p.comm.ep.Failed():
		p.end(p.groupFailure())
		return
	}
	now := time.Now()
	var next time.Time
	var gone []*transfer
	p.each(func(t *transfer) {
		if t.cause != nil {
			return // it has given up
		}
		if err := p.comm.overdue(t, now); err != nil {
			p.giveUp(t, err)
			return
		}
		if p.lost(t) != nil {
			gone = append(gone, t)
		}
		if !t.deadline.IsZero() && (next.IsZero() || t.deadline.Before(next)) {
			next = t.deadline
		}
	})
	if len(gone) > 0 {
		for p.move() { // what was sent before may still be there
		}
		for _, t := range gone {
			if ended, _ := t.state(); !ended {
				p.giveUp(t, p.lost(t))
			}
		}
	}
	p.arm(next, now)
}

// arm makes the driver look again at the next deadline.
func (p *post) arm(next, now time.Time) {
	if next.IsZero() || !p.armed.IsZero() && !next.Before(p.armed) && now.Before(p.armed) {
		return
	}
	p.armed = next
	if p.timer == nil {
		p.timer = time.AfterFunc(next.Sub(now), p.wake)
	} else {
		p.timer.Reset(next.Sub(now))
	}
}

// giveUp ends a transfer that did not succeed. If the other end can see some of it, only
// the failure of the group takes that away.
func (p *post) giveUp(t *transfer, err error) {
	if _, late := errors.AsType[*TimeoutError](err); late {
		if p.comm.ep.Failed() { // meanwhile: whom others waited for until then says nothing any more
			p.end(p.groupFailure())
			return
		}
		p.late = true
	}
	var lost *PeerLostError
	switch {
	case errors.As(err, &lost) || !t.begun:
		for i := range p.from {
			if in := &p.from[i]; in.to == t {
				*in = incoming{over: true}
			}
		}
		p.withdraw(t, err)
	default:
		p.comm.ep.Fail(p.failure(err))
		p.end(err)
	}
}

// fail fails the group.
func (p *post) fail(err error) {
	p.comm.ep.Fail(p.failure(err))
	p.end(p.groupFailure())
}

// end ends all transfers, for good: those whose buffers other ranks see as soon as they do
// no more.
func (p *post) end(cause error) {
	if p.dead == nil {
		p.dead = cause
	}
	p.each(func(t *transfer) {
		if t.cause == nil {
			p.withdraw(t, cause)
		}
	})
	clear(p.from)
}

// withdraw ends a transfer that did not succeed, and reports whether it has. A send whose
// buffer another rank is looking at stays on its list until that rank has taken it, and has
// succeeded then: whatever ends it, its buffer is its caller's again only when no other rank
// can see it. (syncmodel, lane: closeWithdraws, lostWithdraws, viewedIsAwaited)
func (p *post) withdraw(t *transfer, cause error) (ended bool) {
	if t.sending && t.begun {
		switch taken, ok := p.lane.TryWithdraw(t.peer); {
		case !ok:
			t.cause = cause
			return false
		case taken && t.moved == len(t.buf.data):
			p.ended(t, nil)
			return true
		}
	}
	p.ended(t, p.comm.failedTransfer(t, cause))
	return true
}
