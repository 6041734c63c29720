package groupsync

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// stopped simulates processes of which some were woken and do not run.
type stopped map[int]bool

func (s stopped) Wake(int)                        {}
func (s stopped) Sleep(int, context.Context) bool { return true }
func (s stopped) Yield() bool                     { return true }
func (s stopped) LostCore(int)                    {}
func (s stopped) IsAsleep(rank int) bool          { return !s[rank] }
func (s stopped) Dead(int) (int, bool)            { return 0, false }

type noCauses struct{}

func (noCauses) Store(int, *transport.Failure) {}
func (noCauses) Load(int) *transport.Failure   { return nil }

func (noCauses) StoreReason(int, uint64, bool, string) {}
func (noCauses) LoadReason(int, uint64) string         { return "" }

// A timeout blames the rank at the end of the chain of waits, not a rank that waits for it.
func TestBehind(t *testing.T) {
	const none = -1
	for name, c := range map[string]struct {
		waits []int // the rank that each rank sleeps for; rank 0 waits for rank 1
		woken stopped
		want  int
	}{
		"a rank that is awake":            {[]int{1, none, none}, nil, 1},
		"the end of a chain":              {[]int{1, 2, 3, none}, nil, 3},
		"one stopped before it looked":    {[]int{1, 2, 3, none}, stopped{2: true}, 2},
		"a circle":                        {[]int{1, 2, 0}, nil, 1},
		"a rank that waits for itself":    {[]int{1, 2, 2}, nil, 2},
		"one stopped in its sleep":        {[]int{1, 2, 0}, stopped{2: true}, 2},
		"one stopped in another's circle": {[]int{1, 2, 3, 2}, stopped{3: true}, 3},
	} {
		states := make([]*State, len(c.waits))
		for r, on := range c.waits {
			states[r] = new(State)
			states[r].waitOn.Store(uint64(on + 1))
		}
		r := NewMember(NewGroup(states, new(Words), noCauses{}, c.woken), 0, nil, false)
		if got := r.FindStuck(1); got != c.want {
			t.Errorf("%s: blames rank %d, want %d", name, got, c.want)
		}
	}
	// A member of the chain that was just woken is not stopped.
	woken := []*State{new(State), new(State), new(State)}
	woken[1].waitOn.Store(2 + 1)
	if got := NewMember(NewGroup(woken, new(Words), noCauses{}, drowsy{1: 3}), 0, nil, false).FindStuck(1); got != 2 {
		t.Errorf("blames rank %d, want 2", got)
	}
	// If it was woken because it is served, it waits for nobody any more.
	woken[1].waitOn.Store(2 + 1)
	if got := NewMember(NewGroup(woken, new(Words), noCauses{}, served{drowsy{1: 3}, woken[1]}), 0, nil, false).FindStuck(1); got != 1 {
		t.Errorf("blames rank %d, want 1", got)
	}
	// An invalid word ends the chain.
	states := []*State{new(State), new(State)}
	states[1].waitOn.Store(anyRank)
	if got := NewMember(NewGroup(states, new(Words), noCauses{}, stopped{}), 0, nil, false).FindStuck(1); got != 1 {
		t.Errorf("blames rank %d, want 1", got)
	}
}

// A rank whose call has timed out stays in the chain of waits until it has recorded the failure.
// Otherwise a rank that times out at the same moment would blame it.
func TestBehindOneThatTimedOut(t *testing.T) {
	states := []*State{new(State), new(State), new(State)}
	g := NewGroup(states, new(Words), noCauses{}, NewGoroutines(3))
	r := NewMember(g, 0, nil, false)
	require.NoError(t, r.Begin(&transport.Arrival{Ctx: context.Background(), Seq: 1, Limit: transport.Timeout{After: time.Millisecond}}))
	for _, s := range states {
		s.line[1].epoch.Store(1)
	}

	states[1].waitOn.Store(0 + 1)
	var timeout *transport.TimeoutError
	require.ErrorAs(t, r.AwaitMessage(new(interleave.Uint64), 1, 2), &timeout)
	require.Equal(t, []int{2}, timeout.Behind)
	require.Equal(t, 1, NewMember(g, 2, nil, false).FindStuck(1), "rank 2 waits for 1, that for 0, and that for 2")
	r.StepOut()
	require.Zero(t, states[0].waitOn.Load())
}

// drowsy simulates processes that were woken and fall asleep again after that many calls of
// IsAsleep, by sleeper.
type drowsy map[int]int

func (d drowsy) Wake(int)                        {}
func (d drowsy) Sleep(int, context.Context) bool { return true }
func (d drowsy) Yield() bool                     { return true }
func (d drowsy) Dead(int) (int, bool)            { return 0, false }
func (d drowsy) LostCore(int)                    {}
func (d drowsy) IsAsleep(sleeper int) bool {
	d[sleeper]--
	return d[sleeper] < 0
}

// served simulates processes that were woken and go on, one of them from a wait.
type served struct {
	drowsy
	state *State
}

func (s served) IsAsleep(sleeper int) bool {
	isAsleep := s.drowsy.IsAsleep(sleeper)
	if isAsleep {
		s.state.waitOn.Store(0)
	}
	return isAsleep
}

// nothing is the Served of a group without P2P messages.
func nothing(int, int) uint64 { return 0 }

// A wait for a P2P message blames the end of the chain as well. A token for a rank that does not
// sleep is ignored, and a rank that gets up late is not taken for one that is stopped.
func TestBehindOfMessages(t *testing.T) {
	const ranks, ever = 4, 1 << 30
	p2p := func(rank int) int { return ranks + rank }
	for name, c := range map[string]struct {
		woken drowsy
		up    int // the rank that has given up, 0: none
		want  int
	}{
		"a circle":                     {drowsy{}, 0, 1},
		"one stopped in its sleep":     {drowsy{p2p(3): ever}, 0, 3},
		"one that has given up before": {drowsy{p2p(2): ever, p2p(3): ever}, 2, 3},
		"an event for calls and P2Ps":  {drowsy{1: ever, 2: ever, 3: ever, p2p(3): ever}, 0, 3},
		"others that get up late":      {drowsy{p2p(1): 3, p2p(2): 4, p2p(3): ever}, 0, 3},
	} {
		states := make([]*State, ranks)
		for r := range states { // each waits for the next
			states[r] = new(State)
			on := uint64((r+1)%ranks + 1)
			if r == c.up && r != 0 {
				on |= gaveUp
			}
			states[r].p2pWaitOn.Store(on)
		}
		r := NewMember(NewGroup(states, new(Words), noCauses{}, c.woken), 0, nil, false)
		if got := NewP2P(r, false, nothing).Behind(1); got != c.want {
			t.Errorf("%s: blames rank %d, want %d", name, got, c.want)
		}
	}
}

// waking simulates processes. All are asleep except those in stopped; Sleep calls sleep.
type waking struct {
	stopped
	sleep func()
}

func (w waking) Sleep(int, context.Context) bool { w.sleep(); return true }

// Ranks that wait for each other in a circle blame a member that is stopped after its P2P was
// woken. This holds whether the message that it waits for or another one has come, and wherever
// it is stopped.
func TestStoppedAfterItsSleep(t *testing.T) {
	const ranks, victim = 3, 2
	for _, c := range []struct {
		name   string
		before int // the rank that has sent a message to the stopped rank
	}{{"the awaited message has come", 0}, {"another message has come", 1}} {
		states := []*State{new(State), new(State), new(State)}
		var served [ranks][ranks]uint64
		count := func(by, of int) uint64 { return served[by][of] }
		up := stopped{}
		rest := &waking{stopped: up}
		p2p := func(rank int) *P2P {
			return NewP2P(NewMember(NewGroup(states, new(Words), noCauses{}, rest), rank, nil, false), false, count)
		}
		asker := p2p(0)

		blames := func(want int, where string) {
			t.Helper()
			if got := asker.Behind(1); got != want {
				t.Errorf("%s, it is stopped as it %s: blames rank %d, want %d", c.name, where, got, want)
			}
		}
		asker.WaitFor(1)
		states[1].p2pWaitOn.Store(asker.edgeTo(1, victim))
		l := p2p(victim)
		l.WaitFor(0)
		rest.sleep = func() {
			blames(1, "sleeps") // any member of the circle would do
			served[c.before][victim]++
			up[ranks+victim] = c.before != 0 // otherwise only the count tells
		}
		looks := 0
		l.Rest(func() bool {
			if looks++; looks < 3 {
				return false
			}
			blames(victim, "moves the message")
			return true
		}, true)
		blames(victim, "has moved it")

		rest.sleep = func() {
			up[ranks+victim] = false
			blames(1, "sleeps again")
			l.Wake()
		}
		l.WaitFor(0)
		l.Rest(func() bool { return false }, true)
		up[ranks+victim] = true
		blames(victim, "looks why it was woken")
		l.Behind(0)
		blames(1, "gives up") // any member of the circle would do
	}
}

// A wait for a message tells how long it took, unless the message was there.
func TestAfterWait(t *testing.T) {
	r := NewMember(NewGroup([]*State{new(State), new(State)}, new(Words), noCauses{}, NewGoroutines(2)), 0, nil, false)
	require.NoError(t, r.Begin(&transport.Arrival{Ctx: context.Background(), Seq: 1}))
	var waits []time.Duration
	r.AfterWait(func(waited time.Duration) { waits = append(waits, waited) })
	var word interleave.Uint64
	word.Store(1)
	require.NoError(t, r.AwaitMessage(&word, 1, 1))
	require.Empty(t, waits)
	r.isClosed.Store(true)
	require.ErrorIs(t, r.AwaitMessage(&word, 2, 1), transport.ErrClosed)
	require.Len(t, waits, 1)
	require.Positive(t, waits[0])
}
