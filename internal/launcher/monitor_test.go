package launcher

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/flight"
)

// fakeFlight is the flight recorders of a job.
type fakeFlight struct {
	ranks    []flight.Rank
	vanished error
	isClosed bool
}

func (f *fakeFlight) Job() string { return "job" }
func (f *fakeFlight) Size() int   { return len(f.ranks) }
func (f *fakeFlight) Ranks() ([]flight.Rank, error) {
	return append([]flight.Rank(nil), f.ranks...), f.vanished
}
func (f *fakeFlight) Close() error { f.isClosed = true; return nil }

func shownPIDs(m *Monitor) (restarts int, pids []int) {
	restarts, ranks := m.Observe()
	for _, r := range ranks {
		pids = append(pids, r.PID)
	}
	return restarts, pids
}

// A monitor shows the ranks of its node, and what they had recorded last once their memory is gone.
func TestMonitor(t *testing.T) {
	var m Monitor
	_, pids := shownPIDs(&m)
	require.Empty(t, pids)
	require.True(t, m.haveLeft(), "nothing is known: the memory is looked for")

	first := &fakeFlight{ranks: []flight.Rank{{Rank: 1, PID: 11}, {Rank: 2, PID: 12}, {Rank: 3, PID: 13}, {Rank: 4, PID: 14}}}
	m.begin(0, 2, 2)
	m.open(first)
	_, pids = shownPIDs(&m)
	require.Equal(t, []int{12, 13}, pids)
	first.ranks[1].PID = 22
	m.open(nil)
	require.True(t, first.isClosed)
	restarts, pids := shownPIDs(&m)
	require.Equal(t, 0, restarts)
	require.Equal(t, []int{22, 13}, pids, "as they were when the memory was closed")

	// The ranks of a restart take their place once one has recorded something.
	second := &fakeFlight{}
	m.begin(1, 2, 2)
	m.open(second)
	restarts, pids = shownPIDs(&m)
	require.Equal(t, 1, restarts)
	require.Equal(t, []int{22, 13}, pids)
	second.ranks = []flight.Rank{{Rank: 3, PID: 33}}
	_, pids = shownPIDs(&m)
	require.Equal(t, []int{33}, pids)
	second.vanished = errors.New("gone")
	second.ranks = []flight.Rank{{Rank: 3, PID: 99}}
	_, pids = shownPIDs(&m)
	require.Equal(t, []int{33}, pids)
}

// Ranks that have all left their first group may initialize another one.
func TestMonitorLooksAgain(t *testing.T) {
	var m Monitor
	m.begin(0, 0, 2)
	group := func(name string, isLeft bool) flight.GroupCalls { return flight.GroupCalls{Name: name, Left: isLeft} }
	f := &fakeFlight{ranks: []flight.Rank{
		{Rank: 0, Groups: []flight.GroupCalls{group("", true)}},
		{Rank: 1, Groups: []flight.GroupCalls{group("", false), group("pair", true)}},
	}}
	m.open(f)
	require.False(t, m.haveLeft())
	f.ranks[1].Groups[0].Left = true
	require.True(t, m.haveLeft())
}
