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

// Member is one rank's access to its group: the part of a transport.Endpoint that all
// transports share.
type Member struct {
	_     [128]byte // keeps memory of other ranks off the cache lines that this rank writes
	group *Group
	state *State
	rank  int

	seq       uint64 // the current call
	entered   uint64 // the last call that was not rejected
	exposed   bool   // the current call exposes memory
	unsettled uint64 // first of the calls rejected since the last entry, or 0
	slots     Slots
	inline    int       // longest payload that fits into a line, in bytes
	known     []memory  // by rank, as compared last; nil: memory is never compared
	sorted    []written // scratch for comparing the memory of many ranks

	ctx     context.Context
	ctxDone <-chan struct{}
	limit   transport.Timeout // of the current call
	timeout transport.Timeout // of calls that set no limit

	homeCtx  context.Context
	homeStop func() bool // guarded by mu

	spinning   budget
	noSpin     budget  // of calls with NoSpin: zero
	budget     *budget // of the current call
	woke       bool    // the last word that it stored has woken another rank
	calm       uint64  // the event count as of the last look at all peers that found nothing
	suspicious bool    // the next look also checks whether peers are dead
	suspicion  suspicion

	ticks     atomic.Uint64
	tickerFor time.Duration // the timeout for which the ticker was started
	tickStart uint64
	warned    bool
	asked     func() bool // whether others have answered since, so that this rank may warn

	closed atomic.Bool
	gaveUp atomic.Bool                       // its P2P shows a wait that it gave up, unless it waits again
	own    atomic.Pointer[transport.Failure] // the failure that this rank has stored
	mu     sync.Mutex                        // guards the fields below, and Fail
	ticker *ticker
	_      [128]byte
}

// Slots hold the payloads that are too long for a line. Each rank has two slots, one for even
// calls and one for odd calls. Without slots a group accepts no payloads at all.
type Slots [][2][]byte

// NewMember returns rank's access to g. All ranks of g share slots. If poll is set, waits poll
// before they park.
func NewMember(g *Group, rank int, slots Slots, poll bool) *Member {
	r := &Member{group: g, state: g.states[rank], rank: rank, slots: slots, spinning: newBudget(poll, g.processes)}
	r.budget = &r.spinning
	r.inline = transport.InlineBytes
	if g.processes == nil {
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

// Begin starts call e.Seq. It settles the calls that this rank has rejected before, after
// which the rank may publish its line. It sets the call's number before anything can end the
// call, so that Withdraw refers to this call (rule numberFirst).
func (r *Member) Begin(e *transport.Arrival) error {
	r.seq, r.entered = e.Seq, e.Seq
	r.exposed = e.Exposed
	r.ctx, r.ctxDone = e.Ctx, e.Ctx.Done()
	r.budget = &r.spinning
	if e.NoSpin {
		r.budget = &r.noSpin
	}
	r.limit = r.timeout
	if e.Limit.After != 0 {
		r.limit = e.Limit
	}
	r.tickStart = r.ticks.Load()
	r.warned, r.asked = false, nil
	r.clearGaveUp()
	switch {
	case r.closed.Load():
		return transport.ErrClosed
	case r.unsettled != 0:
		return r.settle()
	}
	return nil
}

// clearGaveUp ends what the P2P shows of a wait that it gave up, because this rank makes a
// call again.
func (r *Member) clearGaveUp() {
	if !r.gaveUp.Load() {
		return
	}
	r.gaveUp.Store(false)
	if on := r.state.p2pWaitOn.Load(); on&gaveUp != 0 {
		r.state.p2pWaitOn.CompareAndSwap(on, 0)
	}
}

// Refused returns how many calls this rank has rejected since its last entry. Begin settles
// them and Publish resets the count.
func (r *Member) Refused() uint64 {
	if r.unsettled == 0 {
		return 0
	}
	return r.seq - r.unsettled
}

// settle waits until every peer has rejected the calls that this rank has rejected. A peer
// that entered one of them fails the group, which ends the wait. Rule settles.
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
			r.settled()
			if p.refused(first) && p.refused(last) {
				break
			}
			return r.interrupted(i, who)
		}
	}
	return nil
}

// Publish makes this rank's line of the call visible and wakes the ranks that wait for it.
// Rule twoLines.
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
	r.WakeWaiters()
}

// AwaitAll waits until all ranks have published their lines of the call, then compares the
// lines.
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

// Compare returns an error if the lines of the call differ or the ranks' buffers overlap. All
// ranks must have published their lines.
func (r *Member) Compare() error {
	p := r.seq & 1
	hash := r.state.line[p].hash
	written, changed := uint64(0), false
	for peer, s := range r.group.states {
		l := &s.line[p]
		if l.hash != hash {
			return &transport.MismatchError{Seq: r.seq}
		}
		if e := l.epoch.Load(); e != r.seq {
			return &transport.ProtocolError{Peer: peer, Text: "it is ahead of a call that not all ranks have entered"}
		}
		if r.known != nil {
			m := l.memory()
			written |= m.writes.Hi
			changed = changed || m != r.known[peer]
		}
	}
	if written == 0 || !changed { // programs usually pass the same buffers again
		return nil
	}
	return r.compareMemory()
}

// Admit returns ErrFailed if the group has failed and the call exposes memory. A rank calls it
// after its arrival is visible and all peers have arrived: the rank that failed may have looked
// before this one arrived. Only here a failure takes precedence over the arrival of all ranks. A
// rank does not call it in a call that shows it all payloads: others may have succeeded in that
// call before the group failed. Rule failBeatsReached.
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

// Done marks a rank's body in the current call as over: this rank's own, or another rank's
// that this rank has run. Rule everyStoreWakes.
func (r *Member) Done(rank int) {
	r.group.states[rank].done.Store(r.seq)
	r.woke = r.group.wakeWaiters(rank)
}

// AwaitDone waits until the bodies of all ranks in the current call are over.
func (r *Member) AwaitDone() error {
	for rank, s := range r.group.states {
		if err := r.await(&s.done, r.seq, rank, forCompletion); err != nil {
			return err
		}
	}
	return nil
}

// AllDone reports whether the bodies of all ranks in the current call are over.
func (r *Member) AllDone() bool {
	for _, s := range r.group.states {
		if s.done.Load() < r.seq {
			return false
		}
	}
	return true
}

// Asleep reports whether a rank sleeps or is about to. The answer may be out of date, so only
// speed may depend on it.
func (r *Member) Asleep(rank int) bool {
	return r.group.words.sleepers.Load() != 0 && r.group.states[rank].waitOn.Load() != 0
}

// Payload implements transport.Endpoint.
func (r *Member) Payload(rank, n int) []byte {
	if l := &r.group.states[rank].line[r.entered&1]; n <= r.inline && (n == 0 || r.known == nil || !l.hasReads()) {
		return l.payload[:n]
	}
	return r.slots[rank][r.entered&1][:n]
}

// Fingerprint implements transport.Endpoint.
func (r *Member) Fingerprint(rank int) transport.Fingerprint {
	return r.group.states[rank].line[r.entered&1].fingerprint
}

// Reject implements transport.Endpoint. It stores the reason before the word that marks the
// call as rejected. The reason for the first call of a run stays for as long as a rank may
// load it: this rank's next run starts after a call that all ranks have entered.
func (r *Member) Reject(seq uint64, why string) {
	r.group.causes.StoreReason(r.rank, seq, r.unsettled == 0, why[:min(len(why), transport.ReasonBytes)])
	if r.unsettled == 0 {
		r.unsettled = seq
		r.state.refusedFirst.Store(seq)
	}
	r.state.refusedLast.Store(seq)
	r.seq = seq
	r.clearGaveUp()
	r.group.announce()
}

// Fail implements transport.Endpoint. Rule firstCause.
func (r *Member) Fail(f *transport.Failure) *transport.Failure {
	if r.group.remote != nil {
		return r.failRemote(f)
	}
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
	if r.group.remote != nil {
		r.group.remote.ProposeVerdict(isFormed)
	} else {
		r.group.SetVerdict(isFormed)
	}
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
			return f // with its error value, which other processes cannot get
		}
	}
	if by < 0 || by >= r.Size() || by == r.rank {
		return r.unreadable(by)
	}
	return r.group.causes.Load(by)
}

// unreadable returns the failure of a group whose fail word holds a value that no rank writes.
func (r *Member) unreadable(by int) *transport.Failure {
	err := &transport.ProtocolError{Peer: -1, Text: fmt.Sprintf(
		"the group's memory was overwritten: its word for failures names rank %d of %d, which has not failed", by, r.Size())}
	return &transport.Failure{Kind: transport.FailureAborted, By: r.rank, Text: err.Error(), Cause: err}
}

// Withdraw implements transport.Endpoint for calls in which each rank runs its own body. Rules
// earlyLeave and deadAreOut.
func (r *Member) Withdraw() (ended bool) {
	r.StepOut()
	if !r.exposed || !r.state.arrived(r.seq) {
		return false
	}
	peer := 0 // all ranks below it are done or out
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

// StepOut marks this rank as having left the current call on a failure, and wakes all ranks.
// Rule outOfEveryCall.
func (r *Member) StepOut() {
	if r.state.waitOn.Load()&gaveUp != 0 { // the failure is recorded: no other rank looks for one to blame
		r.state.waitOn.Store(0)
	}
	r.state.out.Store(r.seq)
	r.group.announce()
}

// WaitOut waits until ok returns true. It follows StepOut. Contexts and Close do not interrupt
// it, because peers may still be inside a kernel that uses this rank's buffers. Peers check for
// the failure often; if a kernel nevertheless does not return, WaitOut gives up after the
// call's timeout. A separate timer measures that time, and Close does not stop it.
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
	r.state.waitOn.Store(anyRank)
	r.group.words.sleepers.Add(1)
	for !ok() && !late.Load() {
		r.group.rest.Sleep(r.rank, nil)
	}
	r.group.words.sleepers.Add(-1)
	r.state.waitOn.Store(0)
}

// Leave makes this rank leave the group. It returns true for the first call only.
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
