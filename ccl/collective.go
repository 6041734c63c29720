package ccl

import (
	"fmt"

	"github.com/goccl/goccl/internal/text"
)

// Collective is what a call computes, by whichever algorithm.
type Collective uint8

// The collectives. Calls with blocks of different lengths belong to the same collective:
// AllGather and AllGatherV are both CollAllGather.
const (
	CollBarrier       Collective = iota + 1 // no rank returns before all have entered
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
	collForm
	collReject
	collGatherLengths // the first step of GatherV, ScatterV and AllToAllV
	collScatterLengths
	collAllToAllLengths
)

// collectives is the table of all collectives.
var collectives = [...]struct {
	name    string // in ccl.yaml and error messages
	kernels bool   // algorithms have kernels for it
	reduces bool   // it takes an Op
	rooted  bool   // one rank, the root, has a role of its own
	input   input  // of a rank
	view    verb   // that its views have, besides those that all views have
	placed  bool   // outputs are made of blocks, which may have displacements
	parted  bool   // a rank need not read the whole inputs of others: see Kernel.ReadsOwnPart
}{
	CollBarrier:       {name: "barrier"},
	CollAllReduce:     {name: "all_reduce", kernels: true, reduces: true, view: reduceToAll, parted: true},
	CollReduce:        {name: "reduce", kernels: true, reduces: true, rooted: true, view: reduceToAll, parted: true},
	CollReduceScatter: {name: "reduce_scatter", kernels: true, reduces: true, view: reduceBlock, parted: true},
	CollAllGather:     {name: "all_gather", kernels: true, input: oneBlock, placed: true},
	CollBroadcast:     {name: "broadcast", kernels: true, rooted: true, input: ofRoot},
	CollGather:        {name: "gather", kernels: true, rooted: true, input: oneBlock, placed: true, parted: true},
	CollScatter:       {name: "scatter", kernels: true, rooted: true, input: ofRoot, parted: true},
	CollAllToAll:      {name: "all_to_all", kernels: true, input: blockForEach, placed: true, parted: true},
	CollScan:          {name: "scan", kernels: true, reduces: true, view: scanToAll},
	CollExScan:        {name: "exscan", kernels: true, reduces: true, view: scanToAll},

	collRegion:          {name: "create_shared_region"},
	collAlloc:           {name: "alloc"},
	collSplit:           {name: "split"},
	collNewGroup:        {name: "new_group"},
	collForm:            {name: "form"},
	collReject:          {name: "reject"},
	collGatherLengths:   {name: "gather_v"},
	collScatterLengths:  {name: "scatter_v"},
	collAllToAllLengths: {name: "all_to_all_v"},
}

// input is what a rank brings to a collective.
type input uint8

const (
	vector       input = iota // of the same length on all ranks
	oneBlock                  // its own block
	ofRoot                    // everything, on the root; nothing on others
	blockForEach              // a block for each rank
)

// verb is a verb that only the views of some collectives have.
type verb uint8

const (
	reduceToAll verb = iota + 1
	reduceBlock      // Reduce, of the rank's own block
	scanToAll
)

// Collectives returns the collectives that algorithms have kernels for: all except the barrier,
// which is the engine's own.
func Collectives() []Collective {
	var all []Collective
	for c := range collectives {
		if collectives[c].kernels {
			all = append(all, Collective(c))
		}
	}
	return all
}

// String returns the name that ccl.yaml and error messages use, such as "all_reduce".
func (c Collective) String() string {
	if int(c) < len(collectives) && collectives[c].name != "" {
		return collectives[c].name
	}
	return fmt.Sprintf("collective(%d)", uint8(c))
}

// MarshalText returns the name, such as "all_reduce".
func (c Collective) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// collectiveSynonyms are torch's and MPI's calls that are the same collective.
var collectiveSynonyms = text.Synonyms{
	"bcast": "broadcast", "all_gather_into_tensor": "all_gather", "all_reduce_coalesced": "all_reduce", "all_to_all_single": "all_to_all",
	"reduce_scatter_tensor": "reduce_scatter", "reduce_scatter_block": "reduce_scatter",
}

// UnmarshalText parses the name of one of Collectives. The error for an unknown name suggests the
// nearest one, or the one that other libraries call so: broadcast for bcast.
func (c *Collective) UnmarshalText(name []byte) (err error) {
	*c, err = text.Named("collective", string(name), Collectives(), collectiveSynonyms)
	return err
}

// exchangesLengths reports whether the elements of the call are not the program's.
func (c Collective) exchangesLengths() bool {
	return c == collSplit || c == collGatherLengths || c == collScatterLengths || c == collAllToAllLengths
}
