package launcher

import (
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/metrics"
)

// Monitor shows to any goroutine what the ranks of a job do on this node, while they run and
// afterwards. It holds the memory of their flight recorders. The zero Monitor shows nothing yet.
type Monitor struct {
	mu       sync.Mutex
	first    int    // rank of this node
	count    int    // of them
	restarts int    // of the job
	memory   Flight // nil: not found yet, or closed
	last     []flight.Rank
	window   *flight.Window // of memory
	waiting  flight.Waiting
}

// Observe returns how often the job has been restarted, who makes others wait, and what the ranks
// of this node have recorded up to now, without those that have recorded nothing. Those of an
// earlier attempt are shown until one of a later attempt has recorded something.
func (m *Monitor) Observe() (restarts int, waiting flight.Waiting, ranks []flight.Rank) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.restarts, m.waiting, m.read()
}

// WriteMetrics writes that in the text format of Prometheus. run tells jobs apart that share a
// reader, or is "".
func (m *Monitor) WriteMetrics(w io.Writer, run string, node int) error {
	restarts, waiting, ranks := m.Observe()
	return metrics.Write(w, &metrics.Job{Run: run, Node: strconv.Itoa(node), Host: hostname(), Restarts: restarts, Waiting: waiting, Ranks: ranks})
}

func (m *Monitor) read() []flight.Rank {
	if m.memory == nil {
		return m.last
	}
	isElsewhere := func(r flight.Rank) bool { return r.Rank < m.first || r.Rank >= m.first+m.count }
	all, err := m.memory.Ranks()
	if all = slices.DeleteFunc(all, isElsewhere); err == nil && len(all) > 0 {
		m.last = all
	}
	return m.last
}

// begin makes it that of an attempt of a job.
func (m *Monitor) begin(restarts, first, count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restarts, m.first, m.count = restarts, first, count
}

// open replaces the memory; nil: it is closed.
func (m *Monitor) open(memory Flight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.memory != nil {
		m.read()
		_ = m.memory.Close() // of what was only read
	}
	if m.memory = memory; memory != nil {
		m.window, m.waiting = flight.NewWindow(), flight.Waiting{}
	}
}

// sample reads the memory, and returns who makes others wait, and whether all ranks have left their
// first group: they may initialize another one.
func (m *Monitor) sample(now time.Time) (waiting flight.Waiting, haveLeft bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.memory == nil {
		return m.waiting, true
	}

	ranks := m.read()
	m.window.Add(ranks, now)
	m.waiting = m.window.Waiting()
	return m.waiting, !slices.ContainsFunc(ranks, func(r flight.Rank) bool {
		return !slices.ContainsFunc(r.Groups, func(g flight.GroupCalls) bool { return g.Name == "" && g.Left })
	})
}
