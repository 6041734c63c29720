package local

import (
	"context"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// Name is the transport's name in ccl.yaml.
const Name = "local"

// Waiting determines how the ranks of a group wait for each other.
type Waiting uint8

const (
	// Auto is Poll if the process has a core for every rank that it hosts, otherwise Park.
	Auto Waiting = iota
	// Poll: ranks poll before they park, and each rank runs its own body.
	Poll
	// Park: ranks sleep at once, and the last rank to arrive runs the call.
	Park
)

// hosted counts the ranks that New and NewWaiting have made in this process and that have not
// left.
var hosted interleave.Int64

// New connects that many goroutine ranks and returns their endpoints, by rank.
func New(ranks int) []transport.Endpoint { return NewWaiting(ranks, Auto) }

// NewWaiting is New with a way of waiting.
func NewWaiting(ranks int, how Waiting) []transport.Endpoint {
	cores := interleave.Processors()
	total := hosted.Add(int64(ranks))
	parked := how == Park || how == Auto && total > int64(cores)
	return newGroup(ranks, parked, cores, func() { hosted.Add(-1) })
}

// newGroup returns the endpoints of a new group, by rank. Each calls onLeave when it leaves.
func newGroup(ranks int, parked bool, cores int, onLeave func()) []transport.Endpoint {
	g := &group{
		parked:    parked,
		cores:     cores,
		onLeave:   onLeave,
		handles:   make([]handle, ranks),
		claimed:   make([]paddedWord, ranks),
		callBoxes: make(mailboxes, ranks),
		p2pBoxes:  make(mailboxes, ranks),
	}

	states := make([]*groupsync.State, ranks)
	for i := range states {
		states[i] = new(groupsync.State)
	}
	g.Group = groupsync.NewGroup(states, new(groupsync.Words), groupsync.NewCauses(ranks), groupsync.NewGoroutines(ranks))

	var slots groupsync.Slots // parked groups have none
	if !g.parked {
		slots = newSlots(ranks)
	}

	eps := make([]transport.Endpoint, ranks)
	for i := range eps {
		m := groupsync.NewMember(g.Group, i, slots, !g.parked)
		eps[i] = &endpoint{
			Member: m, group: g,
			p2p: p2p{P2P: groupsync.NewP2P(m, !g.parked, g.served), group: g, rank: i},
		}
	}
	return eps
}

// slotBudget is the sum of the lengths of all ranks' slots, in bytes.
//
// Inputs travel in slots up to about the length at which reducing all of them costs as much as a
// second synchronisation: 2 KiB for two ranks, and less for more, because each rank reduces all
// slots.
const slotBudget = 4096

// newSlots returns two slots for each rank, of whole pairs of cache lines.
func newSlots(ranks int) groupsync.Slots {
	n := max(slotBudget/ranks, transport.InlineBytes)
	n = (n + 127) &^ 127
	slots := make(groupsync.Slots, ranks)
	for rank := range slots {
		for half := range slots[rank] {
			slots[rank][half] = make([]byte, n)
		}
	}
	return slots
}

// group is the state that the ranks of one group share.
type group struct {
	*groupsync.Group
	parked    bool
	cores     int
	onLeave   func()
	handles   []handle
	callBoxes mailboxes            // messages of calls
	p2pBoxes  mailboxes            // P2P messages
	last      lastArriver          // of parked groups
	claimed   []paddedWord         // of groups that poll: by rank, the last call in which its body was claimed
	further   groupsync.Rendezvous // of the ranks that form groups of this one
	recording interleave.Once
	records   *flight.Heap // after recording
}

// handle holds the buffers that a rank shows to the other ranks. It takes two cache lines, of
// which most calls touch only the first.
type handle struct {
	send, recv []byte
	displs     []int
	_          [128 - 72]byte
}

// endpoint implements transport.Endpoint, Memory and Recorder.
type endpoint struct {
	_ [128]byte // keeps memory of other ranks off the cache lines that this rank writes
	*groupsync.Member
	group     *group
	p2p       p2p
	seq       int64  // number of the current call
	anyRunner bool   // of that call: any rank may run its bodies
	ran       int64  // of that call, in a parked group: how many bodies this rank has run
	bodies    bodies // of that call, in a group that polls
	_         [128]byte
}

func (ep *endpoint) Name() string { return Name }

func (ep *endpoint) Enter(e *transport.Arrival) (transport.Role, error) {
	ep.seq, ep.anyRunner = int64(e.Seq), e.AnyRunner
	if err := ep.Begin(e); err != nil {
		return transport.RunOwn, err
	}
	if e.Exposed {
		h := &ep.group.handles[ep.Rank()]
		h.send, h.recv = e.Send, e.Recv
		if e.Displs != nil || h.displs != nil {
			h.displs = e.Displs
		}
	}

	if ep.group.parked {
		return ep.enterParked(e)
	}
	ep.Publish(e)
	if err := ep.AwaitAll(); err != nil {
		return transport.RunOwn, err
	}
	if err := ep.Admit(); err != nil || !e.AnyRunner {
		return transport.RunOwn, err
	}
	ep.bodies = bodies{running: noRank}
	return transport.RunClaimed, nil
}

func (ep *endpoint) Claim() (rank int, ok bool) {
	if ep.group.parked {
		return ep.claimParked()
	}
	return ep.claimAsleep()
}

func (ep *endpoint) Release(failed bool) error {
	if ep.group.parked {
		return ep.releaseParked(failed)
	}
	return ep.awaitBodies(failed)
}

// Withdraw implements transport.Endpoint. Other ranks may meanwhile have completed a call whose
// bodies any rank may run. (syncmodel: leaverTestsBodies)
func (ep *endpoint) Withdraw() (ended bool) {
	switch {
	case !ep.anyRunner:
		return ep.Member.Withdraw()
	case ep.group.parked:
		return ep.withdrawParked()
	}
	ep.Member.Withdraw()
	return ep.AreAllDone()
}

func (ep *endpoint) Memory() transport.Memory   { return ep }
func (ep *endpoint) Staging() transport.Staging { return nil }

func (ep *endpoint) Buffers(rank int) (send, recv []byte) {
	h := &ep.group.handles[rank]
	return h.send, h.recv
}

func (ep *endpoint) Displs(rank int) []int { return ep.group.handles[rank].displs }

func (ep *endpoint) Records() (transport.Records, error) {
	g := ep.group
	g.recording.Do(func() { g.records = flight.NewHeap(ep.Size()) })
	return g.records, nil
}

// Free implements transport.Endpoint. The garbage collector frees the memory.
func (ep *endpoint) Free() error { return nil }

func (ep *endpoint) Fail(f *transport.Failure) *transport.Failure {
	defer ep.group.further.FailSeats()
	return ep.Member.Fail(f)
}

func (ep *endpoint) Close() error {
	if ep.Leave() {
		ep.group.onLeave()
		ep.group.further.CloseSeats(ep.Rank())
	}
	return nil
}

// Group implements transport.Groups. The new group waits like this one, because its ranks are
// goroutines that hosted already counts.
func (ep *endpoint) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	g := ep.group
	return g.further.Group(ctx, ep.Member, number, members, func(ranks int) []transport.Endpoint {
		return newGroup(ranks, g.parked, g.cores, func() {})
	})
}
