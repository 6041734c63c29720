package ddp_test

import "github.com/goccl/goccl/ccl"

// Plan is a random use of package ddp: trainings one after the other, each with a Reducer of its
// own. It is the same on every rank. A [Definition] says what each rank sees.
type Plan struct {
	Seed      uint64
	Ranks     int
	Trainings []*Training
}

// Training is the life of a Reducer, from New to Close.
type Training struct {
	Number         int
	Views          bool // New makes the gradients
	Hooked         bool // a hook negates means
	Unused, Static bool // FindUnused, StaticGraph
	Shares         bool // BroadcastBuffers
	Shards         int  // LogicalShards
	First, Rest    int  // bytes of buckets
	Lengths        []int
	Types          []ccl.DType // of parameters; the buffer has that of the first
	Phases         []*Phase
}

// Phase is a sequence of steps, within Join or not.
type Phase struct {
	Join   bool
	Steps  []*Step
	Counts []int // steps of each rank
}

// Trains returns the ranks that make a step.
func (ph *Phase) Trains(step int) (ranks []int) {
	for rank, count := range ph.Counts {
		if count > step {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Step is what all ranks do until a Wait.
type Step struct {
	Number int
	Turns  []Turn // of each rank
	Fault  *Fault
}

// Turn is what a rank does in a step, with shards in each that it hosts. Each list has the parameters that are ready, in order.
type Turn struct {
	NoSync [][]int // within NoSync, one list a batch
	Last   []int   // in the batch before Wait
	Slip   string  // a mistake, which is an error on this rank only
}

// The slips.
const (
	SlipTwice   = "ready twice"
	SlipRange   = "out of range"
	SlipOutside = "outside the static set"
	SlipNoSync  = "NoSync in a begun step"
	SlipNoLoop  = "ready before the loop over Shards"
	SlipLoop    = "a second loop over Shards"
)

// Fault is how a rank ends the training of all ranks, in a step.
type Fault struct {
	Kind      string
	Rank      int
	Holder    int  // does not begin the step before the rank has failed; -1: no rank waits
	Parameter int  // that the rank leaves out, or whose bucket the hook fails in
	First     int  // so many parameters of the last batch are ready before
	Shard     int  // in which it happens, counted from the first that the rank hosts
	Loose     bool // other ranks may complete the step, and fail in the next one
}

// The kinds of faults. Workers end in the last training only.
const (
	FaultUnready  = "a gradient is not ready"
	FaultHook     = "Finish of the hook fails"
	FaultContext  = "the context of Wait has ended"
	FaultFails    = "the worker fails"
	FaultReturns  = "the worker returns"
	FaultCloses   = "Close within the step"
	FaultLeaves   = "Close before the step"
	FaultStops    = "the function of Join fails"
	FaultNested   = "Join within Join"
	FaultNoWait   = "the function of Join returns without Wait"
	FaultAbandons = "the context of Join ends after the rank's last step"
	FaultBreaks   = "the loop over Shards ends early"
)
