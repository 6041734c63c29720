package launcher

import (
	"slices"
	"sync"

	"github.com/goccl/goccl/internal/flight"
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
}

// Observe returns how often the job has been restarted, and what the ranks of this node have
// recorded up to now, without those that have recorded nothing. Those of an earlier attempt are
// shown until one of a later attempt has recorded something.
func (m *Monitor) Observe() (restarts int, ranks []flight.Rank) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.restarts, m.read()
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
	m.memory = memory
}

// haveLeft reports whether all ranks have left their first group. They may initialize another one.
func (m *Monitor) haveLeft() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.memory == nil {
		return true
	}
	return !slices.ContainsFunc(m.read(), func(r flight.Rank) bool {
		return !slices.ContainsFunc(r.Groups, func(g flight.GroupCalls) bool { return g.Name == "" && g.Left })
	})
}
