package transport

import "context"

// Nodes is implemented by endpoints whose ranks can be on several nodes. Group connects ranks of one node by memory that
// they share, and returns endpoints of that transport.
type Nodes interface {
	// Nodes returns, by rank, the number of its node. Nodes are numbered from 0 in the order of their lowest ranks. The
	// caller does not change the slice.
	Nodes() []int
	// Level connects some ranks, in that order, as Group does. Once this group has failed in this process, so has the level, which is
	// freed after this group. No other level has the same ranks.
	Level(ctx context.Context, members []int) (Endpoint, error)
}
