package flight

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Counter is what the calls of one collective have cost a rank in one group, or its messages in one
// direction.
type Counter struct {
	Collective string        `json:"collective"`
	Calls      uint64        `json:"calls"`       // that have ended
	Failures   uint64        `json:"failures"`    // those of them that returned an error
	Bytes      uint64        `json:"bytes"`       // of the others: the longer one of this rank's input and output
	Duration   time.Duration `json:"duration_ns"` // from the begin of a call to its end
	Waiting    time.Duration `json:"waiting_ns"`  // the part of it in which the rank waited for others
}

// otherCollectives is the name of the counter of collectives that have none of their own.
const otherCollectives = "other"

// counterMemory is a Counter in a lane. Its index there is that of the collective's name, and 0
// for names with higher indices.
type counterMemory struct {
	calls, failures, bytes, durationNS, waitingNS atomic.Uint64
}

// Count adds what calls of a collective have cost to the counters of the lane. c has the cost; what
// is the NewWhat of the collective. Any goroutine may call it.
func (l *Lane) Count(what What, c Counter) { l.memory.counters.of(uint64(what)).add(&c) }

type counters [laneCounters]counterMemory

func (m *counters) of(what uint64) *counterMemory {
	if i := what & math.MaxUint8; i < laneCounters {
		return &m[i]
	}
	return &m[0]
}

func (m *counterMemory) add(c *Counter) {
	m.calls.Add(c.Calls)
	m.failures.Add(c.Failures)
	m.bytes.Add(c.Bytes)
	m.durationNS.Add(uint64(c.Duration))
	m.waitingNS.Add(uint64(c.Waiting))
}

func (m *counterMemory) load() Counter {
	return Counter{
		Calls: m.calls.Load(), Failures: m.failures.Load(), Bytes: m.bytes.Load(),
		Duration: time.Duration(max(int64(m.durationNS.Load()), 0)), Waiting: time.Duration(max(int64(m.waitingNS.Load()), 0)),
	}
}

// moveTo adds the counters to those of to, and sets them to zero.
func (m *counters) moveTo(to *counters) {
	for i := range m {
		c := m[i].load()
		to[i].add(&c)
		for _, w := range []*atomic.Uint64{&m[i].calls, &m[i].failures, &m[i].bytes, &m[i].durationNS, &m[i].waitingNS} {
			w.Store(0)
		}
	}
}

// Counters returns those of a lane, wherever it is.
func (b *Book) Counters(l *Lane) []Counter {
	b.mu.Lock()
	p := reading{names: slices.Clone(b.names)}
	b.mu.Unlock()
	return p.counters(&l.memory.counters)
}

// counters returns those of a lane that have counted a call.
func (p reading) counters(m *counters) (all []Counter) {
	for i := range m {
		c := m[i].load()
		if c.Calls == 0 {
			continue
		}
		if c.Collective = p.name(uint64(i)); c.Collective == "" {
			c.Collective = otherCollectives
		}
		all = append(all, c)
	}
	return all
}
