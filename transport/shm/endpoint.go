package shm

import (
	"errors"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// Name is the transport's name in ccl.yaml.
const Name = "shm"

// node is an arena and its group as one process sees them.
type node struct {
	arena     arena
	layout    layout
	geometry  Geometry
	group     *groupsync.Group
	slots     groupsync.Slots
	poll      bool                 // waits poll before they sleep
	further   groupsync.Rendezvous // on the heap
	recording interleave.Once      // records
	records   *flight.Heap         // of an arena on the heap, once a rank has asked
}

func newNode(a arena, g Geometry, ranks int, rest groupsync.Rest) *node {
	n := &node{arena: a, geometry: g, layout: g.layout(ranks), slots: make(groupsync.Slots, ranks)}
	for i := range n.slots {
		for p := range n.slots[i] {
			n.slots[i][p] = a.bytes(n.layout.payloads+(2*i+p)*n.layout.payload, g.Payload)
		}
	}
	var causes groupsync.Causes = records{a, n.layout}
	if _, ok := rest.(groupsync.Processes); !ok {
		causes = groupsync.NewCauses(ranks) // a record is no place for several goroutines
	}
	n.group = groupsync.NewGroup(n.states(), at[groupsync.Words](a, n.layout.words), causes, rest)
	return n
}

func (n *node) states() []*groupsync.State {
	states := make([]*groupsync.State, n.layout.ranks)
	for i := range states {
		states[i] = at[groupsync.State](n.arena, n.layout.states+i*groupsync.StateBytes)
	}
	return states
}

// endpoint returns a rank's endpoint. It makes regions by alloc.
func (n *node) endpoint(rank int, alloc makeRegion) *endpoint {
	m := groupsync.NewMember(n.group, rank, n.slots, n.poll)
	return &endpoint{Member: m, node: n, p2p: p2p{groupsync.NewP2P(m, n.poll, n.served), n, rank}, regions: &regions{alloc: alloc}}
}

// endpoint implements transport.Endpoint, Staging, Memory, Regions and Groups.
type endpoint struct {
	*groupsync.Member
	*node
	p2p           p2p
	round         uint64 // the last round
	enterWasRound bool   // Enter was the last round, and its Flip is still to come
	pending       result // of the next round
	regions       *regions
	inRegions     bool         // the buffers of the current call may lie in regions
	call          uint64       // the number of the last call of which that was true
	inPlace       bool         // the buffers of all ranks in the current call lie in regions
	payloads      bool         // the current call is Eager, and not in place
	unmap         func() error // unmaps the arena; nil on the heap
}

func (ep *endpoint) Name() string { return Name }

// Enter implements transport.Endpoint. It does not look for a failure if all payloads are there
// (rule payloadsSuffice).
func (ep *endpoint) Enter(e *transport.Arrival) (transport.Role, error) {
	if err := ep.Begin(e); err != nil {
		return transport.RunOwn, err
	}
	ep.inRegions = e.Exposed && ep.regions.made > 0 // the same on all ranks, even if some have freed regions
	payload := e.Payload
	if ep.inRegions {
		ep.call = e.Seq
		if ep.show(e); ep.withholds(e) {
			e.Payload = nil
		}
	}

	if e.Staged {
		ep.publishResult()
	}
	ep.Publish(e)
	e.Payload = payload
	if err := ep.AwaitAll(); err != nil {
		return transport.RunOwn, err
	}
	if inPlace := ep.inRegions && ep.allShown(); inPlace != ep.inPlace {
		ep.inPlace = inPlace // a group without regions never writes it
	}
	if ep.enterWasRound = e.Staged && !ep.inPlace; ep.enterWasRound {
		ep.round++
	}
	ep.payloads = e.Eager && !ep.inPlace
	switch {
	case !ep.payloads:
		return transport.RunOwn, ep.Admit()
	case ep.inRegions:
		return transport.RunOwn, ep.showWithheld(e)
	}
	return transport.RunOwn, nil
}

// Complete implements transport.Endpoint. A call that shows payloads does not wait, because no
// rank touches the memory of another; its end is marked for ranks that withdraw from it.
func (ep *endpoint) Complete() error {
	if ep.payloads {
		ep.Done(ep.Rank())
		return nil
	}
	return ep.Member.Complete()
}

// Claim and Release are never called, because each rank runs its own body.
func (ep *endpoint) Claim() (int, bool) { return 0, false }
func (ep *endpoint) Release(bool) error { return nil }

func (ep *endpoint) Memory() transport.Memory {
	if ep.inPlace {
		return ep
	}
	return nil
}

func (ep *endpoint) Staging() transport.Staging {
	if ep.inPlace {
		return nil
	}
	return ep
}

// Withdraw implements transport.Endpoint. Only if buffers may lie in regions can a rank touch
// another's memory.
func (ep *endpoint) Withdraw() (ended bool) {
	if ep.inRegions {
		return ep.Member.Withdraw()
	}
	return ep.WithdrawFromCopies()
}

func (ep *endpoint) Fail(f *transport.Failure) *transport.Failure {
	defer ep.further.FailSeats()
	return ep.Member.Fail(f)
}

func (ep *endpoint) Close() error {
	if ep.Leave() {
		ep.further.CloseSeats(ep.Rank())
	}
	return nil
}

// Vanished implements transport.FaultGuard. On the heap no memory vanishes, but calls need the
// guard because other ranks may overwrite the arena.
func (ep *endpoint) Vanished(any) error { return nil }

func (ep *endpoint) Free() error {
	err := ep.regions.free()
	if ep.unmap != nil {
		err = errors.Join(err, ep.unmap())
	}
	return err
}
