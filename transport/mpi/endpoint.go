//go:build linux && (amd64 || arm64)

package mpi

import (
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// Name is the transport's name in ccl.yaml.
const Name = "mpi"

// endpoint implements transport.Endpoint, Staging and Groups.
type endpoint struct {
	*groupsync.Member
	group              *group
	p2p                *p2p
	round              uint64 // the last round
	enterWasRound      bool   // Enter was the last round, and its Flip is still to come
	resultLo, resultHi int    // of the next round
	isInParts          bool   // its input is put in parts
	inputs             []span // by rank: these
	packets            [][]byte
}

func (g *group) newEndpoint() *endpoint {
	return &endpoint{Member: g.member, group: g, p2p: &p2p{groupsync.NewP2P(g.member, false, g.servedBy), g}}
}

// Name implements transport.Endpoint.
func (ep *endpoint) Name() string { return Name }

// Enter implements transport.Endpoint.
func (ep *endpoint) Enter(e *transport.Arrival) (transport.Role, error) {
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
func (ep *endpoint) Complete() error {
	ep.Done(ep.Rank())
	ep.group.sendWords()
	if ep.group.saidGoodbye.Load() && !ep.group.hasSentDone() {
		return transport.ErrClosed
	}
	return ep.AwaitDone()
}

// Claim and Release are never called, because each rank runs its own body.
func (ep *endpoint) Claim() (int, bool) { return 0, false }
func (ep *endpoint) Release(bool) error { return nil }

// Memory implements transport.Endpoint: no rank sees another's memory.
func (ep *endpoint) Memory() transport.Memory { return nil }

// Staging implements transport.Endpoint.
func (ep *endpoint) Staging() transport.Staging { return ep }

// Withdraw implements transport.Endpoint.
func (ep *endpoint) Withdraw() (ended bool) { return ep.WithdrawFromCopies() }

// Close implements transport.Endpoint.
func (ep *endpoint) Close() error {
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
func (ep *endpoint) Free() error {
	ep.group.process.removeGroup(ep.group)
	ep.group.levels.drop()
	return nil
}
