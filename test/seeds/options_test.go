//go:build interleave

package seeds

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// options are what ranks choose beside their calls.
type options struct {
	records []recording
	waits   [][]time.Duration // of calls, by the number of the event and the rank of the job; 0: callTime
	drains  [][]*group        // which the rank drains beside its program; nil: none
	pauses  [][]int           // steps before it does so
}

// recording is what the flight recorder of a rank does.
type recording int

const (
	recordsUsual recording = iota
	recordsTimes           // of all calls
	recordsMetrics
	recordsAlone // other ranks do not see them
)

// runOptions runs a job in which one thing goes wrong, and each rank chooses by itself how long its
// calls wait, when another goroutine calls Drain, and what its flight recorder does.
func runOptions(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	j := newJobOf(seed, 3+int(seed%12), 0)
	j.drawOptions()
	return j.runFault(t, o)
}

func (j *job) drawOptions() {
	j.options = &options{}
	waits := []time.Duration{0, callTime / 2, callTime * 3 / 2, -1}
	if !j.isPatient() { // a call that waits for ever does not end
		waits = waits[:3]
	}
	for range j.ranks {
		j.options.records = append(j.options.records, recording(j.IntN(4)))
	}
	for range len(j.events) + 1 {
		of, drained, pauses := make([]time.Duration, j.ranks), make([]*group, j.ranks), make([]int, j.ranks)
		for r := range j.ranks {
			of[r], pauses[r] = waits[j.IntN(len(waits))], j.IntN(2<<j.IntN(8))
			if j.IntN(6) == 0 {
				drained[r] = j.groups[j.IntN(len(j.groups))]
			}
		}
		j.options.waits, j.options.drains, j.options.pauses = append(j.options.waits, of), append(j.options.drains, drained), append(j.options.pauses, pauses)
	}
}

// waitOf returns the option of a rank's call, 0: it has none.
func (j *job) waitOf(e *event, rank int) time.Duration {
	if j.options == nil || e.what != call {
		return 0
	}
	return j.options.waits[e.number][rank]
}

// limit returns how long a rank's part of an event waits.
func (a *auditor) limit(o *outcome) time.Duration {
	switch d := a.job.waitOf(o.event, o.rank); {
	case d < 0:
		return math.MaxInt64 / 4
	case d > 0:
		return d
	}
	return callTime
}

// join makes the communicator of all ranks, with the recorder that the rank chooses.
func (p *player) join(ep transport.Endpoint) (*ccl.Communicator, error) {
	var opts []ccl.Option
	if p.job.options != nil {
		switch p.job.options.records[p.rank] {
		case recordsTimes:
			opts = append(opts, ccl.WithCallTimes())
		case recordsMetrics:
			opts = append(opts, ccl.WithMetrics())
		case recordsAlone:
			ep = &unrecorded{ep, ep.(transport.Groups)}
		}
	}
	return ccl.New(context.Background(), ep, opts...)
}

// unrecorded is an endpoint whose transport has no memory for records.
type unrecorded struct {
	transport.Endpoint
	transport.Groups
}

const drainBeside = "drain beside"

// drainBeside drains a group in another goroutine, which returns nil only if what the rank had
// started before has ended.
func (p *player) drainBeside(e *event) {
	if p.job.options == nil || p.job.options.drains[e.number][p.rank] == nil {
		return
	}
	drained := &event{number: e.number, what: drain, group: p.job.options.drains[e.number][p.rank]}
	c := p.comm(drained.group)
	if c == nil {
		return
	}
	p.hasSeen = true
	var before []*started
	var ends []<-chan struct{}
	for _, s := range p.works {
		if s.event.group == drained.group {
			before, ends = append(before, s), append(ends, s.work.Done())
		}
	}

	p.beside.Go(func() {
		pause(p.job.options.pauses[e.number][p.rank])
		o := &outcome{rank: p.rank, event: drained, kind: drainBeside, first: interleave.Moment(), from: time.Now()}
		o.err = c.Drain(context.Background())
		o.at, o.to = interleave.Moment(), time.Now()
		for i, end := range ends {
			select {
			case <-end:
			default:
				if o.err == nil {
					p.wrongf("drain beside: %v has returned nil, and %v has not ended", e, before[i].event)
				}
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.drained = append(p.drained, o)
	})
}
