package groupsync

import (
	"github.com/goccl/goccl/internal/memmove"
	"github.com/goccl/goccl/transport"
)

// Begin starts call e.Seq. It waits for peers to reject the calls that this rank has rejected
// before, after which the rank may publish its line.
//
// It sets the call's number before anything can end the call, so that Withdraw refers to this
// call (rule numberFirst).
func (r *Member) Begin(e *transport.Arrival) error {
	r.call.begin(e)
	r.budgets.begin(e.NoSpin)
	r.deadline.begin(e.Limit)
	r.endGivenUpWait()

	switch {
	case r.isClosed.Load():
		return transport.ErrClosed
	case r.call.rejected != 0:
		return r.awaitRejections()
	}
	return nil
}

// endGivenUpWait ends what the P2P shows of a wait that it gave up, because this rank makes a
// call again.
func (r *Member) endGivenUpWait() {
	if !r.gaveUp.Load() {
		return
	}
	r.gaveUp.Store(false)
	if on := r.state.p2pWaitOn.Load(); on&gaveUp != 0 {
		r.state.p2pWaitOn.CompareAndSwap(on, 0)
	}
}

// awaitRejections waits until every peer has rejected the calls that this rank has rejected. A peer
// that entered one of them fails the group, which ends the wait. (syncmodel: settles)
func (r *Member) awaitRejections() error {
	first, last := r.call.rejected, r.call.seq-1
	for peer, p := range r.group.states {
		if peer == r.rank {
			continue
		}
		hasRejected := func() bool { return p.hasRejected(first) && p.hasRejected(last) }
		if err := r.awaitCondition(hasRejected, peer, forRejection); err != nil {
			return err
		}
	}
	return nil
}

// Publish makes this rank's line of the call visible and wakes the ranks that wait for it.
// (syncmodel: twoLines)
func (r *Member) Publish(e *transport.Arrival) {
	l := &r.state.line[e.Seq&1]
	if copy(l.payload[:r.inlineBytes], e.Payload) < len(e.Payload) {
		memmove.Copy(r.slots[r.rank][e.Seq&1], e.Payload)
	}
	if r.memories.known != nil {
		l.setMemory(e)
	}
	l.hash = e.Hash
	l.fingerprint = e.Fingerprint

	r.call.rejected = 0
	l.epoch.Store(e.Seq)
	r.WakeWaiters()
}

// AwaitAll waits until all ranks have published their lines of the call, then compares the
// lines.
func (r *Member) AwaitAll() error {
	p := r.call.seq & 1
	for peer, s := range r.group.states {
		if peer == r.rank {
			continue
		}
		if err := r.await(&s.line[p].epoch, r.call.seq, peer, forEntry); err != nil {
			return err
		}
	}
	return r.Compare()
}

// Compare returns an error if the lines of the call differ or the ranks' buffers overlap. All
// ranks must have published their lines.
func (r *Member) Compare() error {
	p := r.call.seq & 1
	hash := r.state.line[p].hash
	written, changed := uint64(0), false

	for peer, s := range r.group.states {
		l := &s.line[p]
		if l.hash != hash {
			return &transport.MismatchError{Seq: r.call.seq}
		}
		if e := l.epoch.Load(); e != r.call.seq {
			return &transport.ProtocolError{Peer: peer, Text: "it is ahead of a call that not all ranks have entered"}
		}

		if r.memories.known != nil {
			m := l.memory()
			written |= m.writes.Hi
			changed = changed || m != r.memories.known[peer]
		}
	}

	if written == 0 || !changed { // programs usually pass the same buffers again
		return nil
	}
	return r.memories.compare(r.group.states, r.call.seq)
}

// Admit returns ErrFailed if the group has failed and the call exposes memory. A rank calls it
// after its arrival is visible and all peers have arrived: the rank that failed may have looked
// before this one arrived. Only here a failure takes precedence over the arrival of all ranks.
//
// A rank does not call it in a call that shows it all payloads: others may have succeeded in that
// call before the group failed. (syncmodel: failBeatsReached)
func (r *Member) Admit() error {
	if r.call.exposed && r.Failed() {
		return transport.ErrFailed
	}
	return nil
}

// Reject implements transport.Endpoint. It stores the reason before the word that marks the
// call as rejected. The reason for the first call of a run stays for as long as a rank may
// load it: this rank's next run starts after a call that all ranks have entered.
func (r *Member) Reject(seq uint64, why string) {
	isFirst := r.call.rejected == 0
	r.group.causes.StoreReason(r.rank, seq, isFirst, why[:min(len(why), transport.ReasonBytes)])
	if isFirst {
		r.call.rejected = seq
		r.state.rejectedFirst.Store(seq)
	}
	r.state.rejectedLast.Store(seq)
	r.call.seq = seq
	r.endGivenUpWait()
	r.group.announce()
}

// Rejected returns how many calls this rank has rejected since its last entry. Begin waits for
// the others to reject them as well, and Publish resets the count.
func (r *Member) Rejected() uint64 {
	if r.call.rejected == 0 {
		return 0
	}
	return r.call.seq - r.call.rejected
}
