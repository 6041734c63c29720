package launcher

import (
	"errors"
	"testing"
	"time"

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
	restarts, _, ranks := m.Observe()
	for _, r := range ranks {
		pids = append(pids, r.PID)
	}
	return restarts, pids
}

func haveLeft(m *Monitor) bool {
	_, left := m.sample(time.Now())
	return left
}

// A monitor shows the ranks of its node, and what they had recorded last once their memory is gone.
func TestMonitor(t *testing.T) {
	var m Monitor
	_, pids := shownPIDs(&m)
	require.Empty(t, pids)
	require.True(t, haveLeft(&m), "nothing is known: the memory is looked for")

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

// Who makes others wait is that of one memory, and remains when that is closed.
func TestMonitorOfWaiting(t *testing.T) {
	var m Monitor
	m.begin(0, 0, 2)
	f := &fakeFlight{ranks: []flight.Rank{{Rank: 0}, {Rank: 1}}}
	now := time.Now()
	for rank := range f.ranks {
		var calls []flight.Call
		for n := range 20 {
			begun := now.Add(time.Duration(n-30)*time.Second + time.Duration(rank)*100*time.Millisecond)
			calls = append(calls, flight.Call{Number: uint64(n + 1), State: flight.StateDone, Begun: begun, Ended: now})
		}
		f.ranks[rank].Groups = []flight.GroupCalls{{Calls: calls}}
	}
	m.open(f)
	waiting, left := m.sample(now)
	require.False(t, left)
	require.Equal(t, 1, waiting.Slow(-1))
	require.InDelta(t, 0.1, waiting.Of[1].Ratio, 1e-9)
	m.open(nil)
	_, waiting, _ = m.Observe()
	require.Equal(t, 1, waiting.Slow(-1))
	m.open(&fakeFlight{})
	_, waiting, _ = m.Observe()
	require.Equal(t, -1, waiting.Slow(-1))
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
	require.False(t, haveLeft(&m))
	f.ranks[1].Groups[0].Left = true
	require.True(t, haveLeft(&m))
}
