//go:build interleave

package seeds

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
	"github.com/goccl/goccl/transport/local"
)

// A job is a program of all ranks, and the one thing that goes wrong in it.
type job struct {
	drawing
	ranks   int
	waiting local.Waiting
	groups  []*group // the first has all ranks
	events  []*event
	fault   mishap
	isKeyed bool     // all calls have keys
	options *options // nil: none

	// Of jobs of moments.
	hasMoments    bool
	second        mishap // a second rank that gives up
	leavesRefused bool   // who refuses its arguments leaves
	hasBodies     bool   // a body fails, and not a rank
	strays        []error
}

// A group is a group of ranks of a job.
type group struct {
	number  int
	members []int // ranks of the job, in the order of the group
}

// rank returns the rank in the group of a rank of the job, -1 if it is not in it.
func (g *group) rank(of int) int { return slices.Index(g.members, of) }

// what is the kind of an event.
type what string

const (
	call    what = "call"
	message what = "message"
	drain   what = "drain"
	wait    what = "wait" // for what was started
	form    what = "form" // a group
	region  what = "region"
	join    what = "join"
)

// event is a part of the program in which each rank of a group has a part. Ranks have their parts one
// after another.
type event struct {
	number int
	what   what
	group  *group
	isLate []bool // by rank of the job: it starts its part, and waits later
	again  []bool // and does so with the Work of an earlier one

	// Of calls.
	call      *calls.Call
	algorithm string
	attempts  []calls.Attempt // by rank of the job
	other     calls.Attempt   // of the fault
	isInside  []bool          // by rank of the job, of a call whose kernel looks
	otherKey  bool            // which is that the call has another key

	// Of messages, and of others.
	from, to int // ranks of the job
	length   int
	isAny    bool // it is received from any rank
	made     *group
	bySplit  bool
}

func (e *event) String() string {
	text := fmt.Sprintf("event %d, %s", e.number, e.what)
	switch e.what {
	case call:
		text += fmt.Sprintf(", %v by %q", e.call, e.algorithm)
	case message:
		text += fmt.Sprintf(" of %d from rank %d to rank %d (any: %v)", e.length, e.from, e.to, e.isAny)
	case form:
		text += fmt.Sprintf(" group %d of %v", e.made.number, e.made.members)
	}
	return text + fmt.Sprintf(", in group %d", e.group.number)
}

// newJob draws a job of so many events.
func newJob(seed uint64, events int) *job { return newJobOf(seed, events, 0) }

// newJobOf draws a job of so many ranks; 0: of any number.
func newJobOf(seed uint64, events, ranks int) *job {
	d := drawFor(seed)
	j := &job{drawing: d, ranks: 4, waiting: []local.Waiting{local.Poll, local.Park}[d.IntN(2)]}
	d.setProcessors()
	if d.IntN(4) == 0 {
		j.ranks = 2 + d.IntN(3)
	}
	if ranks > 0 {
		j.ranks = ranks
	}
	all := j.newGroup()
	for r := range j.ranks {
		all.members = append(all.members, r)
	}

	for len(j.events) < events {
		e := &event{number: len(j.events) + 1, group: j.groups[j.IntN(len(j.groups))], isLate: make([]bool, j.ranks), again: make([]bool, j.ranks)}
		for r := range j.ranks {
			e.isLate[r], e.again[r] = j.IntN(2) == 0, j.IntN(2) == 0
		}
		j.events = append(j.events, e)
		j.drawEvent(e)
	}
	j.drawFault()
	if e := j.fault.event; e > 0 {
		j.fault.inCall = j.events[e-1].group.rank(j.fault.rank)
	}
	return j
}

func (j *job) newGroup() *group {
	g := &group{number: len(j.groups)}
	j.groups = append(j.groups, g)
	return g
}

func (j *job) drawEvent(e *event) {
	switch n := j.IntN(100); {
	case n < 62:
		e.what = call
		j.setCall(e, j.drawCall(e, collectives[j.IntN(len(collectives))]), "")
		j.drawAlgorithm(e)
	case n < 80:
		e.what = message
		e.from, e.to = e.group.members[j.IntN(len(e.group.members))], e.group.members[j.IntN(len(e.group.members))]
		e.length, e.isAny = j.IntN(4), j.IntN(3) == 0
		if j.IntN(6) == 0 {
			e.length = 100 + j.IntN(1000)
		}
		if e.from == e.to { // one end must not wait for the other
			e.isLate[e.from] = true
		}

	case n < 85:
		e.what = drain
	case n < 90:
		e.what = wait
	case n < 94:
		e.what = region
		e.length = j.ranks + j.IntN(8)
	default:
		e.what, e.made, e.bySplit = form, j.newGroup(), j.IntN(2) == 0
		size := len(e.group.members)
		for _, r := range j.Perm(size)[:1+j.IntN(size)] {
			e.made.members = append(e.made.members, e.group.members[r])
		}
		if !e.bySplit { // NewGroup sorts by the ranks of the group
			slices.SortFunc(e.made.members, func(a, b int) int { return e.group.rank(a) - e.group.rank(b) })
		}
	}
}

// collective is a collective, in one of its two forms if it has two.
type collective struct {
	coll        ccl.Collective
	isCoalesced bool
}

var collectives = func() []collective {
	all := []collective{{coll: ccl.CollBarrier}, {ccl.CollAllReduce, true}, {coll: ccl.CollAllReduce}}
	for _, coll := range ccl.Collectives() {
		all = append(all, collective{coll: coll})
	}
	return all
}()

// drawCall draws a call of few elements.
func (j *job) drawCall(e *event, f collective) *calls.Call {
	kind := &calls.Kinds[j.IntN(len(calls.Kinds))]
	ops := kind.OpsFor(f.coll)
	size, n := len(e.group.members), 1+j.IntN(6)
	if j.IntN(5) == 0 {
		n = 40 + j.IntN(300)
	}
	traits := f.coll.Traits()
	hasBlocks := traits.Input != ccl.Vector || traits.Output != ccl.Vector
	if hasBlocks {
		n *= size
	}
	if f.coll == ccl.CollBarrier {
		n = 0
	}

	c := calls.New(f.coll, size, kind.DType, ops[j.IntN(len(ops)-1)], n, j.Int())
	c.Salt, c.Shift = uint64(e.number), j.IntN(2)
	if hasBlocks {
		c.Places = calls.Places(j.IntN(4))
	}
	if c.HasPlacing() {
		c.Placing = calls.Placing(j.IntN(4))
	}
	if f.isCoalesced {
		c.Placing, c.Tensors = calls.Inside, []int{n, 2}
		c.Count = n + 2
	}
	return c
}

func (j *job) drawAlgorithm(e *event) {
	e.algorithm = []string{"", "direct", "ring", "tree", "doubletree"}[j.IntN(5)]
	if e.algorithm == "" || e.call.Coll == ccl.CollBarrier {
		e.algorithm = ""
		return
	}
	if shape := e.call.Shape(); ccl.DefaultRegistry()[e.algorithm].Supports(shape) != nil {
		e.algorithm = ""
	}
}

func (j *job) setCall(e *event, c *calls.Call, algorithm string) {
	e.call, e.algorithm, e.attempts = c, algorithm, make([]calls.Attempt, j.ranks)
	for r, rank := range e.group.members {
		e.attempts[rank] = j.attempt(c, r)
	}
}

func (j *job) attempt(c *calls.Call, rank int) calls.Attempt { return calls.NewAttempt(c, rank, false) }

// drawOther draws the call that a rank makes instead of the others'.
func (j *job) drawOther(e *event) {
	c := e.call.Clone()
	switch {
	case j.IntN(4) == 0:
		e.otherKey = true
	case c.Coll == ccl.CollBarrier:
		c = calls.New(ccl.CollAllReduce, c.Ranks, ccl.Int64, ccl.Sum, 3, 0)
	case c.Tensors == nil && c.Matrix == nil && c.Counts == nil && j.IntN(2) == 0:
		c.Count++
	default:
		c = calls.New(ccl.CollBarrier, c.Ranks, ccl.Int64, ccl.Sum, 0, 0)
	}
	e.other = j.attempt(c, e.group.rank(j.fault.rank))
}
