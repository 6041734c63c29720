package ccl

import "fmt"

// Collective says what is computed, whatever the algorithm.
type Collective uint8

// The collectives.
const (
	CollBarrier    Collective = iota + 1 // nobody returns before all have entered
	CollAllReduce                        // every rank gets the reduction of all inputs
	CollAllGatherV                       // every rank gets all inputs, in rank order
	CollBroadcast                        // every rank gets the root's input

	// The engine's own, which no algorithm has kernels for.
	collRegion
	collAlloc
)

var collectiveNames = [...]string{
	CollBarrier:    "barrier",
	CollAllReduce:  "all_reduce",
	CollAllGatherV: "all_gather_v",
	CollBroadcast:  "broadcast",
	collRegion:     "create_shared_region",
	collAlloc:      "alloc",
}

// Collectives returns the collectives that algorithms have kernels for: all but
// the barrier, which is the engine's own.
func Collectives() []Collective {
	return []Collective{CollAllReduce, CollAllGatherV, CollBroadcast}
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
func (c Collective) Reduces() bool { return c == CollAllReduce }
