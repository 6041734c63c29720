package measure

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
)

// barrier is the only collective without an algorithm.
var barrier = ccl.CollBarrier.String()

// Case is a call to measure. Collectives, types and operations have the names
// of ccl.yaml; values that do not apply are empty.
type Case struct {
	Collective string `json:"collective"` // or a workload
	DType      string `json:"dtype"`
	Op         string `json:"op"`
	Ranks      int    `json:"ranks"`
	Bytes      int    `json:"bytes"`    // of one rank's input
	InPlace    bool   `json:"in_place"` // the result replaces the input
	Root       int    `json:"root"`     // of rooted collectives
	Consume    bool   `json:"consume"`  // the time includes reading the whole result
	// The ranks compute for that long before each step, with an amount that varies by the share
	// Jitter; 0: they do not, and the calls of a step begin at the same time.
	Compute time.Duration `json:"compute_ns,omitempty"`
	Jitter  float64       `json:"jitter,omitempty"`
	Buckets int           `json:"buckets,omitempty"` // calls in a row, each on its own buffers; 0: one
	Wait    bool          `json:"wait,omitempty"`    // of a workload: backward waits for Compute and leaves the cores free
}

// buckets returns the number of calls of a step.
func (c Case) buckets() int { return max(1, c.Buckets) }

// Count returns the number of elements of one rank's input.
func (c Case) Count() int { return c.Bytes / c.elementSize() }

// Total returns the length in bytes of the result on one rank, the root if only that
// has one.
func (c Case) Total() int { return total(c.collective(), c.Bytes, c.Ranks, c.elementSize()) }

// longer returns the longer length in bytes of the input and the result.
func (c Case) longer() int { return max(c.Bytes, c.Total()) }

// parts returns the number of blocks of a scattered input.
func (c Case) parts() int {
	if c.collective().Traits().Input == ccl.RankBlocks {
		return c.Ranks
	}
	return 1
}

// collective returns the collective, 0 for a workload. Plan.Validate has checked its name.
func (c Case) collective() ccl.Collective {
	coll := ccl.CollBarrier
	if c.Collective != barrier {
		_ = coll.UnmarshalText([]byte(c.Collective))
	}
	return coll
}

// dtype returns the element type, Uint8 for a barrier, which has none.
func (c Case) dtype() ccl.DType {
	d := ccl.Uint8
	if c.DType != "" {
		_ = d.UnmarshalText([]byte(c.DType)) // Plan.Validate has checked its name
	}
	return d
}

// elementSize returns the length of an element in bytes, 1 without a type.
func (c Case) elementSize() int { return c.dtype().Size() }

// Section returns the case without its length; tables and pictures show the cases
// of a section together.
func (c Case) Section() Case {
	c.Bytes = 0
	return c
}

// Title describes the case without its length: "all_reduce of float32 by sum, in
// place, 2 ranks".
func (c Case) Title() string {
	text := c.Collective
	if c.DType != "" {
		text += " of " + c.DType
	}
	switch {
	case IsWorkload(c.Collective):
		text += fmt.Sprintf(", %.4g MB", float64(c.Bytes)/1e6)
	case c.Op != "":
		text += " by " + c.Op
	}

	switch coll := c.collective(); {
	case coll.Traits().FromRoot:
		text += fmt.Sprintf(" from rank %d", c.Root)
	case coll.Traits().Rooted:
		text += fmt.Sprintf(" to rank %d", c.Root)
	}
	switch {
	case len(formsOf(c.collective())) < 2 || IsWorkload(c.Collective): // it has only one form
	case c.InPlace:
		text += ", in place"
	default:
		text += ", out of place"
	}
	if c.Consume {
		text += ", result read"
	}
	if pace := c.Pace(); pace != "" {
		text += ", " + pace
	}
	switch c.Ranks {
	case 0: // of cases with different numbers
		return text
	case 1:
		return text + ", 1 rank"
	}
	return fmt.Sprintf("%s, %d ranks", text, c.Ranks)
}

// Pace describes what the ranks do between the calls, as in "4 in a row after computing 250us +-10
// %"; "" if each call starts at rest.
func (c Case) Pace() string {
	if IsWorkload(c.Collective) {
		does := "computes on the ranks' cores"
		if c.Wait {
			does = "waits and leaves the cores free"
		}
		return fmt.Sprintf("backward %s for %s", does, strings.ReplaceAll(c.Compute.String(), "µ", "u"))
	}

	text := ""
	if n := c.buckets(); n > 1 {
		text = fmt.Sprintf("%d in a row", n)
	}
	if c.Compute > 0 {
		text += fmt.Sprintf(" after computing %s +-%.0f %%", strings.ReplaceAll(c.Compute.String(), "µ", "u"), 100*c.Jitter)
	}
	return strings.TrimSpace(text)
}

// Bandwidth returns the algorithm bandwidth and the bus bandwidth of a call that
// takes that many microseconds, in GB/s (1e9 bytes), by the definitions of
// nccl-tests (doc/PERFORMANCE.md there): the algorithm bandwidth is the length of the
// input or of the result, whichever is longer, over the time. The bus
// bandwidth is that times what a perfect algorithm would have to move per link, so that
// different numbers of ranks are comparable: 2(R-1)/R for an all-reduce; (R-1)/R for
// gathers and scatters; 1 for a broadcast and a reduce, and for scans, which
// nccl-tests does not have. A barrier has none.
func (c Case) Bandwidth(us float64) (algorithm, bus float64) {
	if us == 0 {
		return 0, 0
	}
	algorithm = float64(c.longer()) / us / 1e3
	return algorithm, algorithm * c.BusFactor()
}

// BusFactor is the bus bandwidth over the algorithm bandwidth.
func (c Case) BusFactor() float64 {
	n := float64(c.Ranks)
	switch coll := c.collective(); {
	case coll == ccl.CollAllReduce:
		return 2 * (n - 1) / n
	case coll.Traits().Input != ccl.Vector || coll.Traits().Output != ccl.Vector:
		return (n - 1) / n
	}
	return 1
}
