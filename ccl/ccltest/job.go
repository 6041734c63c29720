package ccltest

import (
	"fmt"
	"sync"

	"github.com/goccl/goccl/ccl"
)

// job is one call that all ranks of a group make.
type job struct {
	coll    ccl.Collective
	dtype   ccl.DType
	op      ccl.Op  // of a reduction
	count   int     // elements of a vector
	root    int     // of a broadcast
	counts  []int   // of an all-gather
	places  places  // of an all-gather
	numbers numbers // what the inputs are like
	placing placing // which ranks work in place
	shift   int     // elements by which buffers lie off their allocation
	salt    uint64  // makes the inputs other than those of other jobs

	once     sync.Once
	expected any // what a reduction has to give, a []T
}

// placing says which ranks work in place.
type placing uint8

const (
	apart   placing = iota // none
	inside                 // all
	mixed                  // some
	flipped                // the others
)

func (p placing) inPlace(rank int) bool {
	switch p {
	case inside:
		return true
	case mixed:
		return rank%2 == 0
	case flipped:
		return rank%2 != 0
	}
	return false
}

// places says where the inputs go in the output of an all-gather.
type places uint8

const (
	packed   places = iota // displs is nil
	spaced                 // with gaps
	reversed               // with gaps, the last rank's first
	rotated                // with gaps, and every rank has its own order
)

// displs returns rank's displacements, nil if packed, and how long its output is.
func (j *job) displs(rank int) (displs []int, length int) {
	if j.places == packed {
		for _, n := range j.counts {
			length += n
		}
		return nil, length
	}
	n := len(j.counts)
	displs = make([]int, n)
	for i := range n {
		r := i
		switch j.places {
		case reversed:
			r = n - 1 - i
		case rotated:
			r = (i + rank) % n
		}
		length += 1 + i%3
		displs[r] = length
		length += j.counts[r]
	}
	return displs, length + 2
}

// input returns how many elements rank brings.
func (j *job) input(rank int) int {
	switch {
	case j.coll == ccl.CollAllGather:
		return j.counts[rank]
	case j.coll == ccl.CollBroadcast && rank != j.root:
		return 0
	}
	return j.count
}

func (j *job) String() string {
	text := fmt.Sprintf("%v of %v", j.coll, j.dtype)
	switch j.coll {
	case ccl.CollAllReduce:
		text += fmt.Sprintf(", %v of %d elements", j.op, j.count)
	case ccl.CollBroadcast:
		text += fmt.Sprintf(", %d elements from root %d", j.count, j.root)
	case ccl.CollAllGather:
		text += fmt.Sprintf(", counts %v", j.counts)
		text += [...]string{"", ", with gaps", ", with gaps, in reverse order", ", with gaps, each rank in its own order"}[j.places]
	}
	text += [...]string{"", ", in place", ", in place on even ranks", ", in place on odd ranks"}[j.placing]
	if j.shift > 0 {
		text += fmt.Sprintf(", %d elements off", j.shift)
	}
	return text + [...]string{"", ", floats that round", ", with NaN, infinities and -0"}[j.numbers]
}

// shape returns what the engine asks a kernel's Supports with.
func (j *job) shape(g *group) ccl.Shape {
	longest, total := 0, 0
	for r := range g.ranks {
		longest = max(longest, j.input(r))
		total += j.input(r)
	}
	if j.coll == ccl.CollAllReduce {
		total = j.count
	}
	size := j.dtype.Size()
	return ccl.Shape{
		Collective: j.coll, Ranks: len(g.ranks), Bytes: longest * size, Total: total * size,
		DType: j.dtype, Op: j.op, Topology: g.settings.Topology(),
	}
}

// supported returns those of the jobs that the kernel supports, each with a salt
// of its own. An error says that there is none.
func (g *group) supported(jobs []*job) ([]*job, error) {
	var can []*job
	var why error
	for _, j := range jobs {
		_, err := g.settings.Choose(j.shape(g), "")
		if err != nil {
			why = err
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
