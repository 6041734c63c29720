package transport

import "context"

// Nodes is implemented by endpoints whose ranks can be on several nodes. Group connects ranks of
// one node by memory that they share, and returns endpoints of that transport.
type Nodes interface {
	// Nodes returns the number of each rank's node, by rank. Nodes are numbered from 0 in the order
	// of their lowest ranks. The caller does not change the slice.
	Nodes() []int
	// Host returns the name of the host of a rank, "" if this rank's has the same.
	Host(rank int) string
	// Level connects some ranks, in the order of members, as Group does. Once this group has failed
	// in this process, the level has failed as well. The level is freed after this group. No other
	// level has the same ranks.
	Level(ctx context.Context, members []int) (Endpoint, error)
	// Culprit returns the rank at the end of the chain of waits from rank, which did not come in time
	// in a level: rank itself if it waits for no other one. It asks the other ranks first.
	Culprit(rank int) int
}
