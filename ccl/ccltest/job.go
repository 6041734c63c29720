package ccltest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl"
)

// job is one call that all ranks of a group make.
type job struct {
	coll    ccl.Collective
	ranks   int
	dtype   ccl.DType
	op      ccl.Op  // of a reduction
	count   int     // elements of a vector
	root    int     // of a rooted collective
	counts  []int   // lengths of blocks, if each rank has one
	matrix  [][]int // all-to-all: the number of elements from each rank for each rank
	vform   bool    // the form for unequal blocks is used, even for equal ones
	places  places  // arrangement of blocks, where the collective allows any
	numbers numbers // kind of inputs
	placing placing // ranks that work in place
	shift   int     // elements between the fence and the buffer
	salt    uint64  // makes the inputs differ from the inputs of other jobs
	refused bool    // the engine itself refuses the call
	lone    bool    // all inputs are zero, except those of rank only
	only    int

	once    sync.Once
	answers any        // once computed, an *answers[T]
	results [][]uint64 // bits of each rank's result, where checks compare them
}

// equalBlocks reports whether all blocks have the same length.
func (j *job) equalBlocks() bool {
	rows := append(slices.Clone(j.matrix), j.counts)
	all := slices.Concat(rows...)
	return len(all) == 0 || slices.Min(all) == slices.Max(all)
}

// even reports whether the call is made in the form for blocks of equal length.
func (j *job) even() bool {
	return !j.vform && j.equalBlocks() && (j.places == packed || j.coll == ccl.CollReduceScatter)
}

func (j *job) String() string {
	text := fmt.Sprintf("%v of %v", j.coll, j.dtype)
	if j.coll.Reduces() {
		text += fmt.Sprintf(", %v", j.op)
	}
	switch {
	case j.matrix != nil && j.equalBlocks():
		text += fmt.Sprintf(", blocks of %d", j.matrix[0][0])
	case j.matrix != nil:
		text += fmt.Sprintf(", counts %v", j.matrix)
	case j.counts != nil:
		text += fmt.Sprintf(", counts %v", j.counts)
	case j.coll.Reduces():
		text += fmt.Sprintf(" of %d elements", j.count)
	default:
		text += fmt.Sprintf(", %d elements", j.count)
	}
	switch j.coll {
	case ccl.CollReduce, ccl.CollGather:
		text += fmt.Sprintf(" to root %d", j.root)
	case ccl.CollBroadcast, ccl.CollScatter:
		text += fmt.Sprintf(" from root %d", j.root)
	}
	if j.counts != nil || j.matrix != nil {
		if !j.even() {
			text += ", in the form for unequal blocks"
		}
		if j.coll != ccl.CollReduceScatter {
			text += [...]string{"", ", with gaps", ", with gaps, in reverse order", ", with gaps, each rank in its own order"}[j.places]
		}
	}
	text += [...]string{"", ", in place", ", in place on even ranks", ", in place on odd ranks"}[j.placing]
	if j.shift > 0 {
		text += fmt.Sprintf(", %d elements off", j.shift)
	}
	return text + [...]string{"", ", floats that round", ", with NaN, infinities and -0", ", whose sums are too large for float16"}[j.numbers]
}

// shape returns the shape that the engine passes to a kernel's Supports.
func (j *job) shape(g *group) ccl.Shape {
	longest, total := 0, 0
	for r := range j.ranks {
		longest = max(longest, elements(j.send(r)))
		total = max(total, elements(j.recv(r)))
	}
	size, op := j.dtype.Size(), j.op
	if op == premul {
		op = ccl.Sum // inputs are multiplied before the kernel sees them
	}
	return ccl.Shape{
		Collective: j.coll, Ranks: j.ranks, Nodes: g.nodes, Bytes: longest * size, Total: total * size,
		DType: j.dtype, Op: op, Topology: g.settings.Topology(), Native: g.native,
	}
}

// elements returns the number of elements in the blocks of a buffer.
func elements(l layout) int {
	sum := 0
	for _, b := range l.blocks {
		sum += b.n
	}
	return sum
}

// supported returns the jobs that the kernel supports, each with a salt of its own. It
// returns an error if it supports none.
func (g *group) supported(jobs []*job) ([]*job, error) {
	var can []*job
	var why error
	for _, j := range jobs {
		_, err := g.settings.Choose(j.shape(g), "")
		if err != nil {
			if why == nil {
				why = err
			}
			continue
		}
		j.salt = mix(uint64(len(can)))
		can = append(can, j)
	}
	if len(can) == 0 && why != nil {
		return nil, &skipped{why: fmt.Sprintf("the kernel supports none of %d calls on %d ranks", len(jobs), len(g.ranks)), cause: why}
	}
	return can, nil
}
