//go:build interleave

package seeds

import (
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
)

// A way is what goes wrong in a job.
type way string

const (
	wayNothing   way = "nothing"
	wayCloses    way = "closes"     // the rank closes one of its groups, or all, and goes on with its calls
	wayLeaves    way = "leaves"     // it closes all and makes no further calls
	wayAborts    way = "aborts"     // it aborts one of its groups, or all, and goes on
	wayGives     way = "gives up"   // it aborts and closes all and makes no further calls
	wayPanics    way = "panics"     // its kernel panics
	wayFails     way = "fails"      // its kernel returns an error
	wayOpPanics  way = "op panics"  // a user's operation panics, on whichever rank
	wayCancels   way = "cancels"    // its context ends
	wayStalls    way = "stalls"     // none of its goroutines runs for a time
	waySleeps    way = "sleeps"     // it does not come for a time
	wayRefuses   way = "refuses"    // its arguments are wrong
	wayAllRefuse way = "all refuse" // the arguments of all ranks are wrong
	wayDiffers   way = "differs"    // it makes another call
	wayOverlaps  way = "overlaps"   // two of its goroutines make calls at once
	wayTimes     way = "times"      // timeouts fall due on all ranks
)

var ways = []way{wayNothing, wayCloses, wayCloses, wayLeaves, wayAborts, wayGives, wayPanics, wayFails, wayOpPanics, wayCancels, wayCancels, wayStalls, waySleeps, wayRefuses,
	wayAllRefuse, wayDiffers, wayOverlaps, wayTimes}

// mishap is the one thing that goes wrong in a job.
type mishap struct {
	way    way
	rank   int
	event  int // before or in which it happens; 0: at a step
	step   int
	group  *group // of closes and aborts; nil: all
	late   bool   // a kernel fails after it has moved data
	delay  time.Duration
	inCall int   // its rank in the group of the call
	when   int64 // the moment at which it began, of those that have one
}

func (f *mishap) String() string {
	text := fmt.Sprintf("rank %d %s", f.rank, f.way)
	switch {
	case f.way == wayNothing || f.way == wayTimes:
		return string(f.way)
	case f.event > 0:
		text += fmt.Sprintf(" in event %d", f.event)
	default:
		text += fmt.Sprintf(" at step %d", f.step)
	}

	if f.group != nil {
		text += fmt.Sprintf(", group %d", f.group.number)
	}
	if f.delay > 0 {
		text += fmt.Sprintf(", for %v", f.delay)
	}
	return text
}

// errGone is why a rank aborts, and errKernel why its kernel fails.
var errGone, errKernel = errors.New("this rank has had enough"), errors.New("this kernel has had enough")

// errTired is why a second rank aborts.
var errTired = errors.New("this rank is tired")

// drawFault draws what goes wrong in a job whose events are drawn.
func (j *job) drawFault() {
	f := &j.fault
	*f = mishap{way: ways[j.IntN(len(ways))], rank: j.IntN(j.ranks), event: 1 + j.IntN(len(j.events)), late: j.IntN(2) == 0,
		delay: time.Duration(61+j.IntN(90)) * time.Second}
	if f.way != wayStalls && f.way != waySleeps {
		f.delay = 0
	}

	switch f.way {
	case wayCloses, wayAborts:
		if n := j.IntN(2 * len(j.groups)); n < len(j.groups) {
			f.group = j.groups[n]
		}
		fallthrough
	case wayCancels, wayStalls:
		if j.IntN(3) > 0 {
			f.event, f.step = 0, 1+j.IntN(120*j.ranks*len(j.events)/4)
		}
	case wayPanics, wayFails, wayOpPanics, wayRefuses, wayAllRefuse, wayDiffers, wayOverlaps:
		j.drawCallThatFails()
	}
}

// drawCallThatFails chooses the call of a fault that is one of a call.
func (j *job) drawCallThatFails() {
	f := &j.fault
	var calls []*event
	for _, e := range j.events {
		if e.what == call {
			calls = append(calls, e)
		}
	}
	if len(calls) == 0 {
		f.way = wayNothing
		return
	}
	e := calls[j.IntN(len(calls))]
	f.event, f.rank = e.number, e.group.members[j.IntN(len(e.group.members))]

	switch f.way {
	case wayPanics, wayFails:
		j.setCall(e, j.drawCall(e, collective{coll: ccl.CollAllReduce}), []string{"trap-direct", "trap-ring"}[j.IntN(2)])
	case wayOpPanics:
		c := j.drawCall(e, collective{coll: []ccl.Collective{ccl.CollAllReduce, ccl.CollReduce, ccl.CollScan, ccl.CollReduceScatter}[j.IntN(4)]})
		c.DType, c.Op, c.Count = ccl.Float32, trapOp, max(c.Count, 1)
		j.setCall(e, c, []string{"", "ring", "tree"}[j.IntN(3)])
	case wayDiffers:
		j.drawOther(e)
	case wayOverlaps:
		for r, m := range e.group.members {
			if m == f.rank {
				e.other = j.attempt(e.call, r)
			}
		}
		j.isKeyed = true
	}
}

// trap is what goes wrong in the kernels and the operation below, in the current job.
var trap struct {
	fault *mishap
	calls interleave.Int64 // of the operation
	after int64            // so many of them
}

func (j *job) setTrap() {
	trap.fault, trap.after = &j.fault, 1+int64(j.IntN(4))
	trap.calls = interleave.Int64{}
}

// trapOp is a sum that panics.
var trapOp = ccl.NewOp("trap", true, func(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
	if trap.fault.way == wayOpPanics && trap.calls.Add(1) == trap.after {
		trap.fault.when = interleave.Moment()
		panic(errKernel)
	}
})

// The kernels of direct and ring, which fail or panic on one rank.
func init() {
	for _, name := range []string{"direct", "ring"} {
		right := ccl.DefaultRegistry()[name]
		kernel := *right.Kernels[ccl.CollAllReduce]
		run := kernel.Run
		kernel.Run = func(c *ccl.Call) error {
			if f := trap.fault; !f.late {
				if err := f.strikeKernel(c); err != nil {
					return err
				}
			}
			err := run(c)
			if f := trap.fault; f.late && err == nil {
				err = f.strikeKernel(c)
			}
			return err
		}
		ccl.Register(&ccl.Algorithm{Name: "trap-" + name, Doc: "It fails.", Params: right.Params,
			Kernels: map[ccl.Collective]*ccl.Kernel{ccl.CollAllReduce: &kernel}})
	}
}

// strikeKernel fails or panics if the call is on the rank.
func (f *mishap) strikeKernel(c *ccl.Call) error {
	if c.Rank() != f.inCall {
		return nil
	}
	f.when = interleave.Moment()
	if f.way == wayPanics {
		panic(errKernel)
	}
	return errKernel
}
