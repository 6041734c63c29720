package ccl

import "fmt"

// Collective says what is computed, whatever the algorithm.
type Collective uint8

// The collectives. Where ranks bring, or get, unlike lengths it is the same
// collective: AllGather and AllGatherV are both CollAllGather.
const (
	CollBarrier       Collective = iota + 1 // nobody returns before all have entered
	CollAllReduce                           // every rank gets the reduction of all inputs
	CollReduce                              // the root gets the reduction of all inputs
	CollReduceScatter                       // every rank gets its block of the reduction
	CollAllGather                           // every rank gets all inputs, in rank order
	CollBroadcast                           // every rank gets the root's input
	CollGather                              // the root gets all inputs, in rank order
	CollScatter                             // every rank gets its block of the root's input
	CollAllToAll                            // every rank gets its block of every input
	CollScan                                // every rank gets the reduction of the inputs up to its own
	CollExScan                              // every rank gets the reduction of the inputs before its own

	// The engine's own, which no algorithm has kernels for.
	collRegion
	collAlloc
	collSplit
	collNewGroup
	collGatherLengths // what GatherV, ScatterV and AllToAllV begin with
	collScatterLengths
	collAllToAllLengths
)

var collectiveNames = [...]string{
	CollBarrier:         "barrier",
	CollAllReduce:       "all_reduce",
	CollReduce:          "reduce",
	CollReduceScatter:   "reduce_scatter",
	CollAllGather:       "all_gather",
	CollBroadcast:       "broadcast",
	CollGather:          "gather",
	CollScatter:         "scatter",
	CollAllToAll:        "all_to_all",
	CollScan:            "scan",
	CollExScan:          "exscan",
	collRegion:          "create_shared_region",
	collAlloc:           "alloc",
	collSplit:           "split",
	collNewGroup:        "new_group",
	collGatherLengths:   "gather_v",
	collScatterLengths:  "scatter_v",
	collAllToAllLengths: "all_to_all_v",
}

// Collectives returns the collectives that algorithms have kernels for: all but
// the barrier, which is the engine's own.
func Collectives() []Collective {
	var all []Collective
	for c := CollAllReduce; c <= CollExScan; c++ {
		all = append(all, c)
	}
	return all
}

// String returns the name that ccl.yaml and error messages use, such as
// "all_reduce".
func (c Collective) String() string {
	if int(c) < len(collectiveNames) && collectiveNames[c] != "" {
		return collectiveNames[c]
	}
	return fmt.Sprintf("collective(%d)", uint8(c))
}

// Reduces reports whether the collective takes an Op.
func (c Collective) Reduces() bool {
	switch c {
	case CollAllReduce, CollReduce, CollReduceScatter, CollScan, CollExScan:
		return true
	}
	return false
}

// Rooted reports whether one rank, the root, has another part than the others.
func (c Collective) Rooted() bool {
	switch c {
	case CollReduce, CollBroadcast, CollGather, CollScatter:
		return true
	}
	return false
}
