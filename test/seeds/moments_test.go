//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// runMoments runs a short program, in which one thing goes wrong or two ranks give up. Its calls take
// long, compared with the program, so what goes wrong mostly meets one. Their kernels see which
// memory is another rank's own again. Several goroutines of a rank wait for a Work.
func runMoments(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	j := newJobOf(seed, 2+int(seed%4), 2+int(seed/4%3))
	j.hasMoments = true
	j.drawReaders()
	j.drawSecond()
	j.leavesRefused = j.fault.way == wayRefuses && j.fault.late &&
		!slices.ContainsFunc(j.events, func(e *event) bool { return e.what == form || e.what == region })
	j.setTrap()
	reading = j

	o.IsLate = j.fault.way == wayTimes
	if !slices.Contains([]way{wayTimes, wayStalls, waySleeps, wayOverlaps, wayDiffers}, j.fault.way) {
		o.Patience = patience
	}
	r, err := j.run(t, o)
	if r.Finding != nil {
		return r, nil
	}
	return r, errors.Join(append([]error{err}, j.strays...)...)
}

// readLength is more elements than travel with the synchronisation of a call. A call of an event has
// as many more as the event's number, which its kernel knows it by.
const readLength = 600

// drawReaders draws the calls whose kernels read the inputs of all ranks.
func (j *job) drawReaders() {
	for _, e := range j.events {
		if e.what != call || e.number == j.fault.event || j.IntN(3) == 0 {
			continue
		}
		c := j.drawCall(e, collective{coll: ccl.CollAllReduce})
		c.DType, c.Op, c.Count = ccl.Float32, ccl.Sum, readLength+e.number
		j.setCall(e, c, []string{"reads", "reads-any"}[j.IntN(2)])
		e.isInside = make([]bool, j.ranks)
	}
}

// drawSecond draws a second rank that gives up, for another cause.
func (j *job) drawSecond() {
	f := &j.fault
	if f.way != wayAborts || f.group != nil || j.IntN(3) == 0 {
		return
	}
	j.second = mishap{way: wayAborts, rank: (f.rank + 1 + j.IntN(j.ranks-1)) % j.ranks, event: f.event, step: f.step}
	if f.step > 0 {
		j.second.step += j.IntN(8)
	}
}

// reading is the job whose kernels read.
var reading *job

// The kernels that read the inputs of all ranks before they reduce them: each rank runs its own, or
// any rank another's.
func init() {
	right := ccl.DefaultRegistry()["direct"]
	for _, name := range []string{"reads", "reads-any"} {
		kernel := *right.Kernels[ccl.CollAllReduce]
		kernel.Eager, kernel.AnyRunner = false, name == "reads-any"
		kernel.Run = func(c *ccl.Call) error {
			return c.View(func(v *ccl.View) error {
				for range 3 {
					interleave.Step()
					reading.checkInside(c)
				}
				if f := &reading.fault; f.way == wayFails && reading.hasBodies && c.Rank() == f.inCall {
					return errKernel
				}
				return v.ReduceToAll(v.Part())
			})
		}
		ccl.Register(&ccl.Algorithm{Name: name, Doc: "It reads.", Params: right.Params,
			Kernels: map[ccl.Collective]*ccl.Kernel{ccl.CollAllReduce: &kernel}})
	}
}

// checkInside checks that no rank whose memory a kernel may use has returned from the call.
//
//go:norace
func (j *job) checkInside(c *ccl.Call) {
	number := c.Shape().Bytes/4 - readLength
	canRunOut := j.fault.way == wayStalls || j.fault.way == wayTimes // who leaves a call does not wait for ever
	if canRunOut || number < 1 || number > len(j.events) || len(j.strays) > 0 {
		return
	}
	e := j.events[number-1]
	for _, rank := range e.group.members {
		if !e.isInside[rank] {
			j.strays = append(j.strays, fmt.Errorf("memory: the kernel of rank %d reads the memory of rank %d, which has returned from %v",
				e.group.members[c.Rank()], rank, e))
			return
		}
	}
}

// setInside notes whether a rank is in its part of an event.
//
//go:norace
func (e *event) setInside(rank int, isInside bool) {
	if e.isInside != nil {
		e.isInside[rank] = isInside
	}
}

// awaitTwice waits for a Work in two goroutines, under a context that may end.
func (p *player) awaitTwice(s *started) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var errs [2]error
	var other interleave.WaitGroup
	other.Go(func() { errs[1] = s.work.Wait(ctx) })
	errs[0] = s.work.Wait(ctx)
	other.Wait()
	if (errs[0] == nil) != (errs[1] == nil) {
		p.wrongf("wait: %v has ended with %v, and with %v in another goroutine", s.event, errs[0], errs[1])
	}
	return errs[0]
}

// checkRefused checks that a rank that has refused a call and then left is no lost one in that call.
func (a *auditor) checkRefused() {
	if !a.job.leavesRefused {
		return
	}
	for _, p := range a.players {
		for _, o := range p.outcomes {
			if lost, ok := errors.AsType[*transport.PeerLostError](o.err); ok && lost != nil && o.event.number == a.job.fault.event {
				a.wrong("refused", o, fmt.Sprintf("rank %d of the job has refused the call before it left", a.job.fault.rank))
			}
		}
	}
}
