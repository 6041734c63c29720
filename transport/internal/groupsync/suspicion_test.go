package groupsync

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
)

// mortal simulates processes that may be dead. Sleep calls sleep; looks counts calls of Dead.
var _ Processes = (*mortal)(nil)

type mortal struct {
	sleep func() (woken bool)
	dead  bool
	looks int
}

func (m *mortal) Wake(int)                        {}
func (m *mortal) Sleep(int, context.Context) bool { return m.sleep() }
func (m *mortal) Yield() bool                     { return false }
func (m *mortal) LostCore(int)                    {}
func (m *mortal) IsAsleep(int) bool               { return true }
func (m *mortal) Dead(int) (int, bool)            { m.looks++; return 17, m.dead }

// call makes a call of rank 0 of three. The other ranks have not arrived when it sleeps.
func (m *mortal) call(t *testing.T, r *Member, seq uint64) error {
	t.Helper()
	e := &transport.Arrival{Ctx: context.Background(), Seq: seq}
	if err := r.Begin(e); err != nil {
		t.Fatal(err)
	}
	r.Publish(e)
	return r.AwaitAll()
}

func mortalGroup() (*mortal, *Member, []*State) {
	m := new(mortal)
	states := []*State{new(State), new(State), new(State)}
	return m, NewMember(NewGroup(states, new(Words), noCauses{}, m), 0, nil, false), states
}

// A rank that is woken by the rank it waits for checks no locks.
func TestWokenTestsFirst(t *testing.T) {
	m, r, states := mortalGroup()
	var seq uint64
	m.sleep = func() bool {
		for _, s := range states[1:] { // one after the other
			if l := &s.line[seq&1].epoch; l.Load() < seq {
				l.Store(seq)
				break
			}
		}
		return true
	}

	for seq = 1; seq <= 100; seq++ {
		if err := m.call(t, r, seq); err != nil {
			t.Fatal(err)
		}
	}
	if m.looks != 0 {
		t.Errorf("%d looks at locks in %d calls", m.looks, seq-1)
	}
}

// A rank whose sleep times out checks the locks, and so does a rank that other ranks wake again
// and again.
func TestSleeperFindsDeath(t *testing.T) {
	for _, woken := range []bool{false, true} {
		m, r, states := mortalGroup()
		m.dead = true
		m.sleep = func() bool { return woken }
		var lost *transport.PeerLostError
		if err := m.call(t, r, 1); !errors.As(err, &lost) || lost.PID != 17 {
			t.Errorf("woken %v: %v", woken, err)
		}

		m.looks = 0
		states[1].line[0].epoch.Store(2)
		states[2].line[0].epoch.Store(2)
		if err := m.call(t, r, 2); err != nil || m.looks != 0 {
			t.Errorf("a call without a sleep: %v, %d looks at locks", err, m.looks)
		}
	}
}

// A P2P that messages of other ranks keep waking checks the locks now and then, too.
func TestBusyP2PFindsDeath(t *testing.T) {
	m, r, _ := mortalGroup()
	m.sleep = func() bool { return true }
	l := NewP2P(r, false, nothing)
	rests := func() {
		n := 0
		l.Rest(func() bool { n++; return n > 4 }, true)
	}
	rests()

	if m.looks != 0 {
		t.Errorf("%d looks after tokens", m.looks)
	}
	m.dead = true
	for deadline := time.Now().Add(10 * time.Second); l.Lost(1) == nil; rests() {
		if time.Now().After(deadline) {
			t.Fatal("a P2P with traffic does not notice a death")
		}
	}
}

// Ticks keep their period even if one comes late. A missed tick does not count.
func TestTicksDoNotDrift(t *testing.T) {
	start := time.Now()
	const period = 3 * time.Second
	k := &ticker{period: period, next: start.Add(period)}
	for i := range 16 {
		late := start.Add(time.Duration(i+1)*period + time.Second)
		if got, want := k.untilNext(late), period-time.Second; got != want {
			t.Fatalf("after tick %d: %v until the next, want %v", i+1, got, want)
		}
	}
	if got := k.untilNext(start.Add(100 * period)); got != period {
		t.Errorf("after a stop: %v until the next, want %v", got, period)
	}
}
