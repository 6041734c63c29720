package shm

import (
	"runtime"
	"sync/atomic"

	"github.com/goccl/goccl/internal/lines"
	"github.com/goccl/goccl/transport"
)

// Name is the transport's name in ccl.yaml.
const Name = "shm"

// NewHeap connects ranks goroutine ranks through an arena on the heap and returns
// their endpoints, by rank.
func NewHeap(ranks int, g Geometry) ([]transport.Endpoint, error) {
	if err := g.validate(ranks); err != nil {
		return nil, err
	}
	l := g.layout(ranks)
	a := heapArena(l.total)
	at[atomic.Uint64](a, l.free).Store(uint64(l.pool))

	states := make([]*lines.State, ranks)
	slots := make(lines.Slots, ranks)
	for i := range states {
		states[i] = at[lines.State](a, l.states+i*lines.StateBytes)
		for p := range slots[i] {
			slots[i][p] = a.bytes(l.payloads+(2*i+p)*l.payload, g.Payload)
		}
	}
	group := lines.NewGroup(states, at[lines.Words](a, l.words), records{a, l}, lines.NewGoroutines(ranks))
	spin := ranks <= min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	eps := make([]transport.Endpoint, ranks)
	for i := range eps {
		eps[i] = &endpoint{
			Member: lines.NewMember(group, i, slots, spin),
			group:  group, arena: a, layout: l, geometry: g,
		}
	}
	return eps, nil
}

// endpoint implements transport.Endpoint and transport.Staging.
type endpoint struct {
	*lines.Member
	group    *lines.Group
	arena    arena
	layout   layout
	geometry Geometry
	piece    uint64 // pieces of windows so far
}

func (ep *endpoint) Name() string { return Name }

// Attach and Peer do nothing: ranks do not see each other's values.
func (ep *endpoint) Attach(any)   {}
func (ep *endpoint) Peer(int) any { return nil }

func (ep *endpoint) Enter(e *transport.Entry) (transport.Role, error) {
	if err := ep.Begin(e); err != nil {
		return transport.Own, err
	}
	ep.Publish(e)
	if err := ep.AwaitAll(); err != nil {
		return transport.Own, err
	}
	return transport.Own, ep.Admit()
}

// Claim and Release are never called: every rank runs its own body.
func (ep *endpoint) Claim() (int, bool)       { return 0, false }
func (ep *endpoint) Release(bool) error       { return nil }
func (ep *endpoint) Memory() transport.Memory { return nil }

func (ep *endpoint) Staging() transport.Staging { return ep }

func (ep *endpoint) Close() error {
	ep.Leave()
	return nil
}
