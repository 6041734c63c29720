package ccl

import (
	"context"
	"time"

	"github.com/goccl/goccl/internal/flight"
)

// meter measures the calls of a communicator, one at a time, for its counters and its observer.
//
// A call waits where it enters, where it completes, and where the transport waits for a message or
// a round. Calls of a kernel on a level are part of the call of the whole group, whose waits have
// those of the level.
type meter struct {
	isOn     bool
	observer func(context.Context, ObservedCall) func(ObservedCall)
	waits    *waits // of the call to which those of this engine belong; nil: nobody measures
	waited   waits

	coll      Collective
	algorithm string
	begun     time.Duration // since origin
	cost      flight.Counter
	observed  ObservedCall
	after     func(ObservedCall)
}

// waits is how long the current call has waited.
type waits struct{ total time.Duration }

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
	m.coll, m.algorithm, m.cost, m.waited.total, m.after = coll, "", flight.Counter{Calls: 1}, 0, nil
	m.begun = time.Since(origin)
}

// add adds one of the call's steps.
func (m *meter) add(r *request, algorithm string) {
	if !r.coll.exchangesLengths() {
		m.algorithm = algorithm
		m.cost.Bytes += uint64(max(len(r.in.data), len(r.out.data)))
	}
}

// end ends the measurement of a call.
func (m *meter) end(err error) {
	m.cost.Duration = time.Since(origin) - m.begun
	m.cost.Waiting = min(m.waited.total, m.cost.Duration)
	if err != nil {
		m.cost.Failures, m.cost.Bytes = 1, 0
	}
}

// now returns the time since origin, or 0 if w is nil.
func (w *waits) now() time.Duration {
	if w == nil {
		return 0
	}
	return time.Since(origin)
}

// end adds a wait that began at a time of now.
func (w *waits) end(began time.Duration) {
	if w != nil {
		w.total += time.Since(origin) - began
	}
}

// add adds a wait of the transport.
func (w *waits) add(waited time.Duration) { w.total += waited }

// addWaitsTo adds the waits of the engine's calls to w.
func (e *engine) addWaitsTo(w *waits) {
	e.meter.waits = w
	if t, ok := e.ep.(interface{ AfterWait(func(time.Duration)) }); ok && w != nil {
		t.AfterWait(w.add)
	}
}
