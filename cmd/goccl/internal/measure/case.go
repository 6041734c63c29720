package measure

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// barrier is the one collective that needs no algorithm.
var barrier = ccl.CollBarrier.String()

// Case is a call that is measured. Collectives, types and operations have the names
// of ccl.yaml; what a collective does not have is empty.
type Case struct {
	Collective string `json:"collective"`
	DType      string `json:"dtype"`
	Op         string `json:"op"`
	Ranks      int    `json:"ranks"`
	Bytes      int    `json:"bytes"`    // of one rank's input
	InPlace    bool   `json:"in_place"` // the result takes the place of the input
	Root       int    `json:"root"`     // of what has one
	Consume    bool   `json:"consume"`  // the time includes reading the whole result
}

// Count returns the number of elements of one rank's input.
func (c Case) Count() int { return c.Bytes / c.elementSize() }

// Total returns the length in bytes of the result on one rank, the root where only that
// has one.
func (c Case) Total() int { return total(c.collective(), c.Bytes, c.Ranks, c.elementSize()) }

// longer returns the length in bytes of the input or of the result, whichever is longer.
func (c Case) longer() int { return max(c.Bytes, c.Total()) }

// parts returns into how many blocks an input is dealt out to the ranks.
func (c Case) parts() int {
	switch c.collective() {
	case ccl.CollReduceScatter, ccl.CollScatter, ccl.CollAllToAll:
		return c.Ranks
	}
	return 1
}

// collective returns what is called; names that are not known are those of a barrier.
func (c Case) collective() ccl.Collective {
	coll := ccl.CollBarrier
	if c.Collective != barrier {
		_ = coll.UnmarshalText([]byte(c.Collective)) // Plan.Validate has seen it
	}
	return coll
}

// elementSize returns the length of an element in bytes, 1 if there is no type.
func (c Case) elementSize() int {
	var d ccl.DType
	if d.UnmarshalText([]byte(c.DType)) != nil {
		return 1
	}
	return d.Size()
}

// Section returns the case without its length: tables and pictures show the cases
// of a section together.
func (c Case) Section() Case {
	c.Bytes = 0
	return c
}

// Title describes all of the case but its length: "all_reduce of float32 by sum, in
// place, 2 ranks".
func (c Case) Title() string {
	text := c.Collective
	if c.DType != "" {
		text += " of " + c.DType
	}
	if c.Op != "" {
		text += " by " + c.Op
	}
	switch c.collective() {
	case ccl.CollReduce, ccl.CollGather:
		text += fmt.Sprintf(" to rank %d", c.Root)
	case ccl.CollBroadcast, ccl.CollScatter:
		text += fmt.Sprintf(" from rank %d", c.Root)
	}
	switch {
	case len(placesOf(c.collective())) < 2: // there is no other
	case c.InPlace:
		text += ", in place"
	default:
		text += ", out of place"
	}
	if c.Consume {
		text += ", result read"
	}
	if c.Ranks == 1 {
		return text + ", 1 rank"
	}
	return fmt.Sprintf("%s, %d ranks", text, c.Ranks)
}

// Bandwidth returns the algorithm bandwidth and the bus bandwidth of a call that
// takes so many microseconds, in GB/s (1e9 bytes). The definitions are those of
// nccl-tests (doc/PERFORMANCE.md there): algorithm bandwidth is the size over the
// time, where the size is that of the input or of the result, whichever is longer; bus
// bandwidth is that times what a perfect algorithm would have to move per link, so that
// it can be compared over numbers of ranks: 2(R-1)/R for an all-reduce; (R-1)/R where
// blocks are gathered or dealt out; 1 for a broadcast and a reduce, and for scans, which
// nccl-tests has none of. A barrier has none.
func (c Case) Bandwidth(us float64) (algorithm, bus float64) {
	if us == 0 {
		return 0, 0
	}
	algorithm = float64(c.longer()) / us / 1e3
	return algorithm, algorithm * c.busFactor()
}

func (c Case) busFactor() float64 {
	n := float64(c.Ranks)
	switch c.collective() {
	case ccl.CollAllReduce:
		return 2 * (n - 1) / n
	case ccl.CollReduceScatter, ccl.CollAllGather, ccl.CollGather, ccl.CollScatter, ccl.CollAllToAll:
		return (n - 1) / n
	}
	return 1
}
