package transport

import "context"

// Nodes is implemented by endpoints whose ranks can be on several nodes. Group connects ranks of one node by memory that
// they share, and returns endpoints of that transport.
type Nodes interface {
	// Nodes returns, by rank, the number of its node. Nodes are numbered from 0 in the order of their lowest ranks. The
	// caller does not change the slice.
	Nodes() []int
	// Levels connects the ranks on this rank's node, and the lowest ranks of all nodes, as two groups, in the order of their ranks;
	// leaders is nil on other ranks. Once this group has failed in this process, so have they. Levels is collective, is called once
	// at most, and has the errors of Group.
	Levels(ctx context.Context) (node, leaders Endpoint, err error)
}
