package launcher

// Nodes is which part of a job a launcher has, if each of several nodes has a launcher. The zero
// value is a job of this node alone.
type Nodes struct {
	Count, Rank int    // of nodes, and of this one, from 0
	Endpoint    string // a host of node 0 and a port, at which its launcher listens, and then rank 0
	Secret      string // of the job; "": anybody may join
}
