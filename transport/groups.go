package transport

import "context"

// GroupCallBits is how many of the lower bits of a group's number tell which call makes the
// group. The upper bits tell the groups of one call apart.
const GroupCallBits = 48

// Groups is implemented by endpoints whose ranks can form further groups.
type Groups interface {
	// Group connects some ranks of this group as a group of its own and returns this rank's
	// endpoint in it. members are their ranks in this group, in the order of their ranks in the
	// new one. Preconditions:
	//
	//   - each member appears once, the caller among them;
	//   - only members call Group, all with the same arguments;
	//   - no two groups of this one that have a member in common have the same number;
	//   - groups whose numbers have the same lower GroupCallBits bits are made by one call: each rank
	//     makes them in ascending order, and makes none after one that it could not join.
	//
	// Group is not a step of a call. Several goroutines may call it at any time before Close,
	// also while another goroutine makes calls of this endpoint. It may return before the other
	// members have called it.
	//
	// The new group has its own calls, numbered from 1, its own failure and its own departures.
	// Closing either group does not affect the other. The new group waits as this one does.
	//
	// errors.Is finds ErrFailed if this group has failed, ErrClosed if this endpoint was closed
	// before all members came, and the error of ctx. errors.As finds *TimeoutError (the
	// deadline of ctx has passed), *PeerLostError (a member left this group or died before it
	// came), *AbortedError (a member gave up) and *AllocationFailedError; their ranks are ranks
	// of the new group. Other errors describe invalid arguments, or a file in the place of the
	// group's memory that does not belong to it.
	Group(ctx context.Context, number uint64, members []int) (Endpoint, error)
}
