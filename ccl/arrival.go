package ccl

import "github.com/goccl/goccl/transport"

// arrival is what a rank shows when it enters a call, and which ranks may run its part.
type arrival uint8

const (
	// unshared: no rank touches memory of another one in the call. Nothing moves, or the kernel calls
	// the transport's library, or it calls levels, or the view makes copies.
	unshared arrival = iota
	// staged: like unshared, and the view's first copy is made while the rank enters.
	staged
	// carried: the inputs travel with the synchronisation.
	carried
	// carriedOrInPlace: like carried, unless the buffers of all ranks lie in regions. Then the call is
	// like sharedByAll.
	carriedOrInPlace
	// exposed: ranks read and write memory of each other, and each runs its own part.
	exposed
	// sharedByAll: like exposed, but any rank may run the part of another one.
	sharedByAll
)

// arrivals is what each arrival means to the transport. See transport.Arrival.
var arrivals = [...]struct {
	hasPayload, hasBuffers                  bool
	isEager, isExposed, anyRunner, isStaged bool
}{
	unshared:         {hasBuffers: true},
	staged:           {hasBuffers: true, isStaged: true},
	carried:          {hasPayload: true},
	carriedOrInPlace: {hasPayload: true, hasBuffers: true, isEager: true, isExposed: true, anyRunner: true},
	exposed:          {hasBuffers: true, isExposed: true},
	sharedByAll:      {hasBuffers: true, isExposed: true, anyRunner: true},
}

// stagedEarly is the length in bytes of the longest result for which a rank stages the first
// piece before it enters the call. That saves a synchronisation; but by the time a longer result
// is made, the piece has left the caches.
const stagedEarly = 1 << 20

// leastInPlace is the length in bytes, over all ranks, up to which inputs travel with the
// synchronisation even if they lie in regions: copying and reducing more costs more than a second
// synchronisation. 2 processes, in place and not: 256 B 0.49 and 0.35 us, 2 KiB 0.50 and 0.48,
// 4 KiB 0.54 and 0.72, 8 KiB 0.64 and 1.16.
const leastInPlace = 4 << 10

// arrivalOf returns how the rank enters a call by p.
func (e *engine) arrivalOf(p *plan) arrival {
	switch {
	case !p.isShared:
		return unshared
	case p.shape.Eager && e.shared.isUsed && e.regions != nil && e.size*p.shape.Bytes > leastInPlace:
		return carriedOrInPlace
	case p.shape.Eager:
		return carried
	// Too long for payloads, or not of a kernel that takes them.
	case !p.choice.Kernel.AnyRunner:
		return exposed
	case e.memory != nil || e.shared.isUsed:
		return sharedByAll
	case p.shape.Total <= stagedEarly:
		return staged
	}
	return unshared
}

// setArrival writes to the entry what the rank shows in a call.
func (e *engine) setArrival(r *request, p *plan) {
	a, shows := &e.entry, &arrivals[e.arrivalOf(p)]
	a.Eager, a.Exposed, a.AnyRunner, a.Staged = shows.isEager, shows.isExposed, shows.anyRunner, shows.isStaged
	a.Reads, a.Writes = transport.Span{}, transport.Span{}
	if p.shape.Total > 0 {
		a.Reads, a.Writes = spanOf(r.in.data), spanOf(r.writes)
	}

	a.Payload, a.Send, a.Recv = nil, nil, nil
	if shows.hasPayload {
		a.Payload = r.in.data
	}
	if shows.hasBuffers {
		a.Send, a.Recv = r.in.data, r.out.data
	}
}
