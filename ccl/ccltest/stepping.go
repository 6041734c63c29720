package ccltest

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/verbs"
	"github.com/goccl/goccl/test/calls"
	"github.com/goccl/goccl/transport"
)

// stepping is an endpoint that calls step before its rank waits for or reads from other
// ranks, and before its body, and traces the rank's activity. Where ranks run each other's
// bodies any goroutine may call step.
type stepping struct {
	transport.Endpoint
	stepper
	memory  transport.Memory
	staging transport.Staging
}

// stepper is shared by the parts of a stepping endpoint.
type stepper struct {
	step func()
	*rank
}

// start is a step before a wait, and succeed the end of the wait.
func (s *stepper) start(a activity, peer int) {
	s.trace.set(a, peer)
	s.step()
}

func (s *stepper) succeed(err error) {
	if err == nil {
		s.trace.set(computing, 0)
		return
	}
	s.trace.fail()
	if _, ok := errors.AsType[*transport.TimeoutError](err); ok && s.trace.verb() {
		s.g.noteLate()
	}
}

// wait does the part of a verb that waits. It fails where another goroutine of the rank's kernel
// does so at the same time.
func (s *stepper) wait(a activity, peer int, wait func() error) error {
	if !s.trace.busy.CompareAndSwap(false, true) {
		err := fmt.Errorf("%v: two goroutines use one Call at the same time; it belongs to the goroutine that runs the kernel", verbs.Caller())
		s.g.culprit.CompareAndSwap(nil, &culprit{s.me, err})
		return err
	}
	defer s.trace.busy.Store(false)
	if s.g.lingers && !runsKernel() {
		yield(100) // the kernel's other goroutines come to their verbs meanwhile
	}
	s.start(a, peer)
	err := wait()
	s.succeed(err)
	return err
}

func newStepping(ep transport.Endpoint, step func(), r *rank) transport.Endpoint {
	s := &stepping{Endpoint: ep, stepper: stepper{step, r}}
	if m := ep.Memory(); m != nil {
		s.memory = &steppingMemory{m, step}
	}
	if g := ep.Staging(); g != nil {
		s.staging = &steppingStaging{g, s.stepper}
	}
	return s
}

func (s *stepping) Enter(e *transport.Arrival) (transport.Role, error) {
	s.start(entering, 0)
	role, err := s.Endpoint.Enter(e)
	s.succeed(err)
	if err == nil {
		s.trace.clear()
	}
	s.step()
	return role, err
}

func (s *stepping) Claim() (rank int, ok bool) {
	s.step()
	return s.Endpoint.Claim()
}

func (s *stepping) Release(failed bool) error {
	s.start(ended, 0)
	return s.Endpoint.Release(failed)
}

func (s *stepping) Complete() error {
	s.start(ended, 0)
	return s.Endpoint.Complete()
}

func (s *stepping) Payload(rank, n int) []byte {
	s.step()
	return s.Endpoint.Payload(rank, n)
}

// Transfer makes the endpoint a verbs.Observer.
func (s *stepping) Transfer(t verbs.Transfer) { s.trace.add(t) }

func (s *stepping) Put(to int, m *transport.Message) (n int, err error) {
	err = s.wait(sending, to, func() error {
		n, err = s.Endpoint.Put(to, m)
		return err
	})
	return n, err
}

func (s *stepping) Drain(to int) error {
	return s.wait(sending, to, func() error { return s.Endpoint.Drain(to) })
}

func (s *stepping) Next(from int) (view transport.Message, err error) {
	err = s.wait(receiving, from, func() error {
		view, err = s.Endpoint.Next(from)
		return err
	})
	return view, err
}

func (s *stepping) Take(from int) {
	s.step()
	s.Endpoint.Take(from)
}

func (s *stepping) Memory() transport.Memory   { return s.memory }
func (s *stepping) Staging() transport.Staging { return s.staging }

type steppingMemory struct {
	transport.Memory
	step func()
}

func (s *steppingMemory) Buffers(rank int) (send, recv []byte) {
	s.step()
	return s.Memory.Buffers(rank)
}

type steppingStaging struct {
	transport.Staging
	stepper
}

func (s *steppingStaging) Input(rank, n int) []byte {
	s.step()
	return s.Staging.Input(rank, n)
}

func (s *steppingStaging) Flip() error {
	s.start(looking, 0)
	err := s.Staging.Flip()
	s.succeed(err)
	return err
}

func (s *steppingStaging) Result(rank int) (lo, hi int, result []byte) {
	s.step()
	return s.Staging.Result(rank)
}

// delays returns a function that yields at some of a rank's steps, and at fewer of them
// spins while others get far ahead, depending on seed. It does so less often with more
// ranks, and after more steps of a call.
func delays(seed uint64, ranks int, t *trace) func() {
	var total, inCall atomic.Uint64
	return func() {
		if t.activity() == entering {
			inCall.Store(0)
		}
		h, k := calls.Mix(seed+total.Add(1)), inCall.Add(1)
		switch {
		case h%(uint64(4*ranks)*(1+k/16)) == 0: // time.Sleep would take a millisecond
			for start := time.Now(); time.Since(start) < 50*time.Microsecond; {
				runtime.Gosched()
			}
		case h>>32%4 == 0:
			yield(int(h >> 40 % 20))
		}
	}
}

func yield(times int) {
	for range times {
		runtime.Gosched()
	}
}
