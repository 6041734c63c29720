package groupsync

import (
	"slices"

	"github.com/goccl/goccl/transport"
)

// interruption is an event that can end a wait early.
type interruption uint8

const (
	none         interruption = iota
	closed                    // this rank has left
	groupFailed               // the group has failed
	cancelled                 // the call's context has ended
	peerRejected              // the peer has rejected the call
	peerLeft                  // the peer has left the group
	peerFinished              // the peer has ended the call and will send no more
	timedOut                  // the call's timeout has passed
)

// CheckEntry returns the error that ends a wait for all peers to enter the call, or nil if
// nothing interrupts it.
func (r *Member) CheckEntry() error {
	if i, who := r.checkAll(-1, forEntry); i != none {
		return r.interruptionError(i, who)
	}
	return nil
}

// checkAll checks everything that can interrupt a wait for peer, and returns the rank that did. A
// wait for a message or a round looks only at that peer (rule roundsEnd).
func (r *Member) checkAll(peer int, why purpose) (i interruption, who int) {
	if i := r.checkSelf(); i != none {
		return i, peer
	}
	if why == forMessage {
		i, who = r.checkPeer(peer, why), peer
	} else {
		i, who = r.checkPeers(why)
	}
	r.suspicion.hasArisen = false

	if i != none {
		return i, who
	}
	return r.checkDeadline(), peer
}

// checkSelf checks what ends any wait of this rank, whatever peer it waits for.
func (r *Member) checkSelf() interruption {
	if r.isClosed.Load() {
		return closed
	}
	if r.Failed() {
		return groupFailed
	}
	return r.call.checkContext()
}

// checkPeers looks at all peers, because any missing peer makes the wait pointless. It skips them
// if no event has occurred since a look that found calm: no peer had left, or rejected this call or
// a later one. (syncmodel: looksAtAll, calmBefore, calmIsQuiet)
func (r *Member) checkPeers(why purpose) (i interruption, who int) {
	events := r.group.words.events.Load()
	if events == r.calmEvents && !r.suspicion.hasArisen {
		return none, 0
	}

	isCalm := true
	for who, p := range r.group.states {
		if i := r.checkPeer(who, why); i != none {
			return i, who
		}
		isCalm = isCalm && p.departed.Load() == 0 && p.rejectedLast.Load() < r.call.seq
	}
	if isCalm {
		r.calmEvents = events
	}
	return none, 0
}

// checkPeer checks whether peer has ended a wait for it. It loads departed first, because what a
// rank did before it left counts. It judges departed last, because a rank that rejects a call and
// then leaves has rejected it. (syncmodel: departedThenWord, rejectedBeatsDeparted)
func (r *Member) checkPeer(peer int, why purpose) interruption {
	if peer == r.rank {
		return none
	}
	p := r.group.states[peer]
	hasLeft := p.departed.Load() != 0 || r.suspicion.hasArisen && r.isDead(peer)

	switch why {
	case forEntry:
		if p.hasArrived(r.call.seq) {
			return none
		}
		if p.hasRejected(r.call.seq) {
			return peerRejected
		}
	case forCompletion:
		if p.done.Load() >= r.call.seq {
			return none
		}

	case forRejection:
		if p.hasRejected(r.call.seq - 1) {
			return none
		}
	case forMessage:
		if p.done.Load() >= r.call.seq {
			return peerFinished
		}
	}

	if hasLeft {
		return peerLeft
	}
	return none
}

// isDead reports whether peer is a process that has ended, for whatever reason.
func (r *Member) isDead(peer int) bool {
	if r.group.processes == nil || peer == r.rank {
		return false
	}
	_, isDead := r.group.processes.Dead(peer)
	return isDead
}

// interruptionError returns the error of a wait for peer that i has ended.
func (r *Member) interruptionError(i interruption, peer int) error {
	switch i {
	case closed:
		return transport.ErrClosed
	case groupFailed:
		return transport.ErrFailed
	case cancelled:
		return transport.ContextError(r.call.ctx)
	// What the awaited rank did instead.
	case peerRejected:
		return r.rejectedError()
	case peerLeft:
		return r.lostError(peer)
	case peerFinished:
		return &transport.ProtocolError{Peer: peer,
			Text: "it ended the call while this rank waits to exchange a message with it"}
	}
	return r.timeoutError(peer)
}

// timeoutError returns the error of a wait for peer that has timed out. Other ranks see from then
// on that this one has given up.
func (r *Member) timeoutError(peer int) *transport.TimeoutError {
	r.warn() // unless it has
	if on := r.state.waitOn.Load(); on != 0 {
		r.state.waitOn.Store(on | gaveUp)
	}
	e := &transport.TimeoutError{Missing: r.missingRanks(), By: r.rank, Seq: r.call.seq, After: r.deadline.limit.After}
	switch {
	case len(e.Missing) > 0:
	case peer >= 0:
		e.Behind = []int{r.FindStuck(peer)}
	default:
		e.Behind = r.findAwake()
	}
	return e
}

// lostError returns the error of a wait for a peer that has left or died.
func (r *Member) lostError(peer int) *transport.PeerLostError {
	e := &transport.PeerLostError{Rank: peer}
	if r.group.processes != nil {
		e.PID, _ = r.group.processes.Dead(peer)
	}
	if r.group.remote != nil {
		e.Host = r.group.remote.Host(peer)
	}
	return e
}

// missingRanks returns the ranks that have not entered the current call, without those that wait
// for another of them in an earlier one.
func (r *Member) missingRanks() (ranks []int) {
	isMissing := func(rank int) bool {
		return rank != r.rank && !r.group.states[rank].hasArrived(r.call.seq)
	}
	for rank := range r.group.states {
		if isMissing(rank) {
			ranks = append(ranks, rank)
		}
	}

	isHeldUp := func(rank int) bool {
		on := waitsFor(r.group.states[rank].waitOn.Load(), r.Size())
		return on >= 0 && on != rank && isMissing(on)
	}
	if first := slices.DeleteFunc(slices.Clone(ranks), isHeldUp); len(first) > 0 {
		return first
	}
	return ranks
}

// rejectedError returns an error with the ranks that have rejected the current call, their
// reasons, and the ranks that have not come to it.
func (r *Member) rejectedError() *transport.RejectedError {
	e := &transport.RejectedError{Seq: r.call.seq}
	for rank, p := range r.group.states {
		switch {
		case rank == r.rank || p.hasArrived(r.call.seq):
		case p.hasRejected(r.call.seq):
			e.Ranks = append(e.Ranks, rank)
			e.Why = append(e.Why, r.group.causes.LoadReason(rank, r.call.seq))
		default:
			e.Missing = append(e.Missing, rank)
		}
	}
	return e
}
