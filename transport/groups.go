package transport

import "context"

// Groups is implemented by endpoints whose ranks can form further groups.
type Groups interface {
	// Group connects some ranks of this group in a group of its own, and returns this rank's
	// endpoint in it. members are their ranks here, in the order of their ranks there, each
	// once and the caller's among them; only members call it, all with the same arguments.
	// number tells groups apart: no two groups of this one that have a member in common ever
	// have the same.
	//
	// It is no step of a call: it may be called at any time before Close, by several
	// goroutines, while another makes calls of this endpoint. It may return before the others
	// have called it.
	//
	// The new group has its own calls, from 1 on, its own failure and its own departures;
	// closing either group leaves the other alone. It waits as this one does.
	//
	// errors.Is finds ErrFailed and ErrClosed, if this group has failed or its endpoint was
	// closed before all members came, and what has ended ctx; errors.As finds *TimeoutError
	// (the deadline of ctx has passed), *PeerLostError (a member has left this group or died
	// before it came), *AbortedError (one has given up) and *AllocationFailedError. The ranks in
	// them are those of the new group. Other errors say what is wrong with the arguments, or
	// with what lies in the place of the group's memory.
	Group(ctx context.Context, number uint64, members []int) (Endpoint, error)
}
