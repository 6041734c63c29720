package packet

import (
	"errors"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// Endpoint implements transport.Endpoint, Staging and Groups.
type Endpoint struct {
	*groupsync.Member
	group              *group
	p2p                *p2p
	round              uint64 // the last round
	enterWasRound      bool   // Enter was the last round, and its Flip is still to come
	resultLo, resultHi int    // of the next round
	isInParts          bool   // its input is put in parts
	inputs             []span // by rank: these
	input              []byte // of the next round: the rank's, or a copy
}

func (g *group) newEndpoint() *Endpoint {
	return &Endpoint{Member: g.member, group: g, p2p: &p2p{groupsync.NewP2P(g.member, false, g.servedBy), g}}
}

// Name implements transport.Endpoint.
func (ep *Endpoint) Name() string { return ep.group.process.name }

// Enter implements transport.Endpoint.
func (ep *Endpoint) Enter(e *transport.Arrival) (transport.Role, error) {
	ep.group.rest.noSpin.Store(e.NoSpin)
	if err := ep.Begin(e); err != nil {
		return transport.RunOwn, err
	}
	if e.Staged {
		ep.sendRound() // before the line: a rank that replies to a query has sent both
	}
	ep.Publish(e)
	ep.group.lines.send(e)
	if err := ep.AwaitAll(); err != nil {
		if _, differ := errors.AsType[*transport.MismatchError](err); differ && e.Staged {
			ep.round++ // all ranks have sent it, and in the next one they may tell each other why
			ep.group.settle()
		}
		return transport.RunOwn, err
	}
	if err := ep.Admit(); err != nil {
		return transport.RunOwn, err
	}
	if ep.enterWasRound = e.Staged; e.Staged {
		return transport.RunOwn, ep.awaitRound() // a line may come on another way than the round before it
	}
	return transport.RunOwn, nil
}

// Complete implements transport.Endpoint. If the rank was closed before the others could learn that
// it is done, it fails, as they do.
func (ep *Endpoint) Complete() error {
	ep.Done(ep.Rank())
	ep.group.sendWords()
	if ep.group.saidGoodbye.Load() && !ep.group.hasSentDone() {
		return transport.ErrClosed
	}
	return ep.AwaitDone()
}

// Claim and Release are never called, because each rank runs its own body.
func (ep *Endpoint) Claim() (int, bool) { return 0, false }
func (ep *Endpoint) Release(bool) error { return nil }

// Memory implements transport.Endpoint: no rank sees another's memory.
func (ep *Endpoint) Memory() transport.Memory { return nil }

// Staging implements transport.Endpoint.
func (ep *Endpoint) Staging() transport.Staging { return ep }

// Withdraw implements transport.Endpoint.
func (ep *Endpoint) Withdraw() (ended bool) {
	ended = ep.WithdrawFromCopies()
	ep.group.settle()
	return ended
}

// Close implements transport.Endpoint.
func (ep *Endpoint) Close() error {
	if !ep.Leave() {
		return nil
	}
	ep.group.process.noteClosed()
	if ep.group.nodes == nil { // it has not joined
		return nil
	}
	return ep.group.nodes.release()
}

// Free implements transport.Endpoint.
func (ep *Endpoint) Free() error {
	ep.group.process.removeGroup(ep.group)
	ep.group.levels.drop()
	return nil
}

// ID returns the number of the endpoint's group, the same on all its ranks.
func (ep *Endpoint) ID() uint64 { return ep.group.id }

// Processes returns the rank of each rank's process. The caller does not change the slice.
func (ep *Endpoint) Processes() []int { return ep.group.processOf }

// IsIntact reports whether the group has not failed, and none of its processes has died.
func (ep *Endpoint) IsIntact() bool {
	for _, rank := range ep.group.processOf {
		if ep.group.process.isDead(rank) {
			return false
		}
	}
	return ep.group.failure() == nil
}

// NoteLibraryCall notes that the rank begins a collective of the wire's library. While such calls
// follow each other, the process looks at the wire less often.
func (ep *Endpoint) NoteLibraryCall() { ep.group.process.libraryCalls.Add(1) }
