package groupsync

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/internal/memmove"
	"github.com/goccl/goccl/transport"
)

// Member is one rank's hand on its group: the part of a transport.Endpoint that
// all transports share.
type Member struct {
	_     [128]byte // nobody else's memory on the cache lines that a rank writes
	group *Group
	state *State
	rank  int

	seq       uint64 // the current call
	entered   uint64 // the last call that was not refused
	exposed   bool   // the current call exposes memory
	unsettled uint64 // first call of the run refused since the last entry, or 0
	slots     Slots
	inline    int       // how long payloads are that travel in a line
	known     []memory  // of all ranks, which was compared last; nil: it is never compared
	sorted    []written // room for what many ranks write

	ctx     context.Context
	ctxDone <-chan struct{}
	limit   transport.Timeout // of the current call
	timeout transport.Timeout // of calls without a limit of their own

	homeCtx  context.Context
	homeStop func() bool // guarded by mu

	eager      budget
	patient    budget  // of patient calls: nothing
	budget     *budget // of the current call
	calm       uint64  // the last event after which all was as if there were none
	suspicious bool    // the next look is also at whether others are dead
	suspicion  suspicion

	ticks     atomic.Uint64
	tickerFor time.Duration // the timeout that the ticker was started for
	tickStart uint64
	warned    bool

	closed atomic.Bool
	gaveUp atomic.Bool                       // its lane shows that it gave up, unless it waits again
	own    atomic.Pointer[transport.Failure] // what this rank has recorded
	mu     sync.Mutex                        // guards what follows, and the making of failures
	ticker *ticker
	_      [128]byte
}

// Slots are where payloads go that are too long for a line: two per rank, by the
// parity of the call. Empty slots mean that no payloads travel at all.
type Slots [][2][]byte

// NewMember returns rank's hand on g. slots is shared by all ranks of g. Its waits
// poll before they park if poll is set.
func NewMember(g *Group, rank int, slots Slots, poll bool) *Member {
	r := &Member{group: g, state: g.states[rank], rank: rank, slots: slots, eager: newBudget(poll, g.others)}
	r.budget = &r.eager
	r.inline = transport.InlineBytes
	if g.others == nil {
		r.inline, r.known = inlineBesideMemory, newKnown(len(g.states))
	}
	return r
}

// Rank returns the rank's number.
func (r *Member) Rank() int { return r.rank }

// Size returns the number of ranks.
func (r *Member) Size() int { return len(r.group.states) }

// SetTimeout implements transport.Endpoint.
func (r *Member) SetTimeout(t transport.Timeout) { r.timeout = t }

// PayloadLimit implements transport.Endpoint.
func (r *Member) PayloadLimit() int {
	if len(r.slots) == 0 {
		return 0
	}
	return len(r.slots[r.rank][0])
}

// Begin starts call e.Seq, up to the point where the rank may publish its line:
// it settles the run of calls refused before. The call has its number before anything can
// end it, so that Withdraw asks about this call (rule numberFirst).
func (r *Member) Begin(e *transport.Arrival) error {
	r.seq, r.entered = e.Seq, e.Seq
	r.exposed = e.Exposed
	r.ctx, r.ctxDone = e.Ctx, e.Ctx.Done()
	r.budget = &r.eager
	if e.NoSpin {
		r.budget = &r.patient
	}
	r.limit = r.timeout
	if e.Limit.After != 0 {
		r.limit = e.Limit
	}
	r.tickStart = r.ticks.Load()
	r.warned = false
	r.goesOn()
	switch {
	case r.closed.Load():
		return transport.ErrClosed
	case r.unsettled != 0:
		return r.settle()
	}
	return nil
}

// goesOn ends what the lane shows of a wait that it gave up: this rank makes a call again.
func (r *Member) goesOn() {
	if !r.gaveUp.Load() {
		return
	}
	r.gaveUp.Store(false)
	if on := r.state.laneWaitOn.Load(); on&gaveUp != 0 {
		r.state.laneWaitOn.CompareAndSwap(on, 0)
	}
}

// Refused returns how many calls were refused since the last entry; Begin
// settles them, Publish forgets them.
func (r *Member) Refused() uint64 {
	if r.unsettled == 0 {
		return 0
	}
	return r.seq - r.unsettled
}

// settle waits until every peer has refused the run of calls that this rank has
// refused. A peer that entered one of them instead fails the group, which ends
// the wait. Rule settles.
func (r *Member) settle() error {
	first, last := r.unsettled, r.seq-1
	for peer, p := range r.group.states {
		if peer == r.rank {
			continue
		}
		if err := r.awaitRefusal(peer, p, first, last); err != nil {
			return err
		}
	}
	return nil
}

func (r *Member) awaitRefusal(peer int, p *State, first, last uint64) error {
	var w wait
	defer r.endWait(&w)
	for !(p.refused(first) && p.refused(last)) {
		if i, who := r.step(&w, peer, forRefusal); i != none {
			if p.refused(first) && p.refused(last) {
				break
			}
			return r.interrupted(i, who)
		}
	}
	return nil
}

// Publish makes this rank's line of the call visible and wakes who waits for it. Rule
// twoLines.
func (r *Member) Publish(e *transport.Arrival) {
	l := &r.state.line[e.Seq&1]
	if copy(l.payload[:r.inline], e.Payload) < len(e.Payload) {
		memmove.Copy(r.slots[r.rank][e.Seq&1], e.Payload)
	}
	if r.known != nil {
		l.setMemory(e)
	}
	l.hash = e.Hash
	l.fingerprint = e.Fingerprint
	r.unsettled = 0
	l.epoch.Store(e.Seq)
	r.group.WakeWaiters(r.rank)
}

// AwaitAll waits until all ranks have published their lines of the call, and
// compares them.
func (r *Member) AwaitAll() error {
	p := r.seq & 1
	for peer, s := range r.group.states {
		if peer == r.rank {
			continue
		}
		if err := r.await(&s.line[p].epoch, r.seq, peer, forEntry); err != nil {
			return err
		}
	}
	return r.Compare()
}

// Compare returns an error if the lines of the call, all published, differ, or if ranks
// brought the same memory to it.
func (r *Member) Compare() error {
	p := r.seq & 1
	mine := &r.state.line[p]
	for peer, s := range r.group.states {
		l := &s.line[p]
		if l.hash != mine.hash {
			return &transport.MismatchError{Seq: r.seq}
		}
		if e := l.epoch.Load(); e != r.seq {
			return &transport.ProtocolError{Peer: peer, Text: "it is ahead of a call that not all ranks have entered"}
		}
	}
	if r.known != nil {
		return r.compareMemory()
	}
	return nil
}

// Admit is the entry check of a call that exposes memory: after its own arrival
// is visible and all peers are reached a rank must not go on if the group has
// failed, since the one that failed may have looked before it arrived. At this
// one place failure beats having reached everybody. Rule failBeatsReached.
func (r *Member) Admit() error {
	if r.exposed && r.Failed() {
		return transport.ErrFailed
	}
	return nil
}

// Complete implements transport.Endpoint. Rule completionSync.
func (r *Member) Complete() error {
	r.Done(r.rank)
	return r.AwaitDone()
}

// Done says that the part of a rank in the current call is over: its own, or that of
// another, whose body this rank has run. Rule everyStoreWakes.
func (r *Member) Done(rank int) {
	r.group.states[rank].done.Store(r.seq)
	r.group.WakeWaiters(rank)
}

// AwaitDone waits until the parts of all ranks in the current call are over.
func (r *Member) AwaitDone() error {
	for rank, s := range r.group.states {
		if err := r.await(&s.done, r.seq, rank, forCompletion); err != nil {
			return err
		}
	}
	return nil
}

// AllDone reports whether they are.
func (r *Member) AllDone() bool {
	for _, s := range r.group.states {
		if s.done.Load() < r.seq {
			return false
		}
	}
	return true
}

// Asleep reports whether a rank sleeps, or is about to, unless it did so a moment
// ago: nothing but speed may hang on it.
func (r *Member) Asleep(rank int) bool {
	return r.group.words.sleepers.Load() != 0 && r.group.states[rank].waitOn.Load() != 0
}

// Payload implements transport.Endpoint.
func (r *Member) Payload(rank, n int) []byte {
	if n <= r.inline {
		return r.group.states[rank].line[r.entered&1].payload[:n]
	}
	return r.slots[rank][r.entered&1][:n]
}

// Print implements transport.Endpoint.
func (r *Member) Fingerprint(rank int) transport.Fingerprint {
	return r.group.states[rank].line[r.entered&1].fingerprint
}

// Refuse implements transport.Endpoint. The reason is there before a word says that the
// call was refused. That of the first call of a run stays for as long as a rank may look
// for it: this rank's next run begins after a call that all ranks have entered.
func (r *Member) Refuse(seq uint64, why string) {
	r.group.causes.StoreReason(r.rank, seq, r.unsettled == 0, why[:min(len(why), transport.ReasonBytes)])
	if r.unsettled == 0 {
		r.unsettled = seq
		r.state.refusedFirst.Store(seq)
	}
	r.state.refusedLast.Store(seq)
	r.seq = seq
	r.goesOn()
	r.group.announce()
}

// Fail implements transport.Endpoint. Rule firstCause.
func (r *Member) Fail(f *transport.Failure) *transport.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Failed() {
		r.own.Store(f)
		r.group.causes.Store(r.rank, f)
		if r.group.words.fail.CompareAndSwap(0, uint64(r.rank)+1) {
			r.group.announce()
		}
	}
	return r.Failure()
}

// Conclude implements transport.Endpoint.
func (r *Member) Conclude(isFormed bool) bool {
	verdict := uint64(unformed)
	if isFormed {
		verdict = formed
	}
	r.group.words.verdict.CompareAndSwap(undecided, verdict)
	return r.group.words.verdict.Load() == formed
}

// Failed implements transport.Endpoint.
func (r *Member) Failed() bool { return r.group.words.fail.Load() != 0 }

// Failure implements transport.Endpoint.
func (r *Member) Failure() *transport.Failure {
	by := int(r.group.words.fail.Load()) - 1
	switch by {
	case -1:
		return nil
	case r.rank:
		if f := r.own.Load(); f != nil {
			return f // with its error value, which may not have left the process
		}
	}
	if by < 0 || by >= r.Size() || by == r.rank {
		return r.unreadable(by)
	}
	return r.group.causes.Load(by)
}

// unreadable is the failure of a group whose word for it is one that no rank writes.
func (r *Member) unreadable(by int) *transport.Failure {
	err := &transport.ProtocolError{Peer: -1, Text: fmt.Sprintf(
		"the group's memory was overwritten: its word for failures names rank %d of %d, which has not failed", by, r.Size())}
	return &transport.Failure{Kind: transport.FailureAborted, By: r.rank, Text: err.Error(), Cause: err}
}

// Withdraw implements transport.Endpoint for calls that every rank runs itself. Rules
// earlyLeave and deadAreOut.
func (r *Member) Withdraw() (ended bool) {
	r.StepOut()
	if !r.exposed || !r.state.arrived(r.seq) {
		return false
	}
	peer := 0 // all before it are out
	r.WaitOut(func() bool {
		for ; peer < len(r.group.states); peer++ {
			p := r.group.states[peer]
			if peer != r.rank && p.arrived(r.seq) && p.done.Load() < r.seq && p.out.Load() < r.seq && !r.dead(peer) {
				return false
			}
		}
		return true
	})
	return false
}

// StepOut says that this rank has left the current call on a failure. Rule outOfEveryCall:
// it wakes everybody.
func (r *Member) StepOut() {
	r.state.out.Store(r.seq)
	r.group.announce()
}

// WaitOut waits, after StepOut, until ok. It is deaf to everything else: peers are
// still inside a kernel with this rank's buffers in their hands. They look at the
// failure often; only a kernel that does not return makes it give up, when the
// call's timeout has passed once more. That time has a timer of its own, which Close does
// not stop.
func (r *Member) WaitOut(ok func() bool) {
	if ok() {
		return
	}
	var late atomic.Bool
	if after := r.limit.After; after > 0 {
		timer := time.AfterFunc(after, func() {
			late.Store(true)
			r.group.Wake(r.rank)
		})
		defer timer.Stop()
	}
	r.state.waitOn.Store(everyone)
	r.group.words.sleepers.Add(1)
	for !ok() && !late.Load() {
		r.group.rest.Sleep(r.rank, nil)
	}
	r.group.words.sleepers.Add(-1)
	r.state.waitOn.Store(0)
}

// Leave makes this rank leave the group, and reports whether it was the first to
// say so.
func (r *Member) Leave() bool {
	if !r.closed.CompareAndSwap(false, true) {
		return false
	}
	r.mu.Lock()
	if r.ticker != nil {
		r.ticker.stop()
	}
	if r.homeStop != nil {
		r.homeStop()
	}
	r.mu.Unlock()
	r.state.left.Store(1)
	r.group.announce()
	return true
}
