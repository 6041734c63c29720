package ccl

import (
	"time"

	"github.com/goccl/goccl/internal/flight"
)

// meter measures the calls of a communicator, one at a time. A nil meter reads no clock.
//
// A call waits where it enters, where it completes, and where the transport waits for a message or
// a round. Calls of a kernel on a level are part of the call of the whole group, whose meter the
// level has.
type meter struct {
	coll   Collective
	bytes  int
	begun  time.Duration // since origin
	waited time.Duration
}

// begin starts the measurement of a call.
func (m *meter) begin(coll Collective) {
	switch coll {
	case collGatherLengths:
		coll = CollGather
	case collScatterLengths:
		coll = CollScatter
	case collAllToAllLengths:
		coll = CollAllToAll
	}
	*m = meter{coll: coll, begun: time.Since(origin)}
}

// add adds the buffers of one of the call's steps.
func (m *meter) add(r *request) {
	if !r.coll.exchangesLengths() {
		m.bytes += max(len(r.in.data), len(r.out.data))
	}
}

// now returns the time since origin, or 0 if m is nil.
func (m *meter) now() time.Duration {
	if m == nil {
		return 0
	}
	return time.Since(origin)
}

// endWait adds a wait that began at a time of now.
func (m *meter) endWait(began time.Duration) {
	if m != nil {
		m.waited += time.Since(origin) - began
	}
}

// addWait adds a wait of the transport.
func (m *meter) addWait(waited time.Duration) { m.waited += waited }

// end returns what the call has cost.
func (m *meter) end(err error) flight.Counter {
	c := flight.Counter{Calls: 1, Bytes: uint64(m.bytes), Duration: time.Since(origin) - m.begun}
	c.Waiting = min(m.waited, c.Duration)
	if err != nil {
		c.Failures, c.Bytes = 1, 0
	}
	return c
}

// measureBy makes m measure the engine's calls.
func (e *engine) measureBy(m *meter) {
	e.meter = m
	if w, ok := e.ep.(interface{ AfterWait(func(time.Duration)) }); ok && m != nil {
		w.AfterWait(m.addWait)
	}
}
