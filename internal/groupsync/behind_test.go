package groupsync

import (
	"context"
	"testing"

	"github.com/goccl/goccl/transport"
)

// stopped plays processes of which some have been woken and do not get up.
type stopped map[int]bool

func (s stopped) Wake(int)                        {}
func (s stopped) Sleep(int, context.Context) bool { return true }
func (s stopped) Yield() bool                     { return true }
func (s stopped) Asleep(rank int) bool            { return !s[rank] }
func (s stopped) Dead(int) (int, bool)            { return 0, false }

type noCauses struct{}

func (noCauses) Store(int, *transport.Failure) {}
func (noCauses) Load(int) *transport.Failure   { return nil }

func (noCauses) StoreReason(int, uint64, bool, string) {}
func (noCauses) LoadReason(int, uint64) string         { return "" }

// A timeout blames the rank for which all wait in the end, not the one that waits for it.
func TestBehind(t *testing.T) {
	const nobody = -1
	for name, c := range map[string]struct {
		waits  []int // for whom each rank sleeps; rank 0 waits for rank 1
		woken  stopped
		blamed int
	}{
		"who is awake":                    {[]int{1, nobody, nobody}, nil, 1},
		"the end of a chain":              {[]int{1, 2, 3, nobody}, nil, 3},
		"the end of a chain, just woken":  {[]int{1, 2, 3, nobody}, stopped{1: true}, 3},
		"a circle":                        {[]int{1, 2, 0}, nil, 1},
		"who waits for itself":            {[]int{1, 2, 2}, nil, 2},
		"one stopped in its sleep":        {[]int{1, 2, 0}, stopped{2: true}, 2},
		"one stopped in another's circle": {[]int{1, 2, 3, 2}, stopped{3: true}, 3},
	} {
		states := make([]*State, len(c.waits))
		for r, on := range c.waits {
			states[r] = new(State)
			states[r].waitOn.Store(uint64(on + 1))
		}
		r := NewMember(NewGroup(states, new(Words), noCauses{}, c.woken), 0, nil, false)
		if got := r.behind(1); got != c.blamed {
			t.Errorf("%s: blames rank %d, want %d", name, got, c.blamed)
		}
	}
	// A word that cannot be is not followed.
	states := []*State{new(State), new(State)}
	states[1].waitOn.Store(everyone)
	if got := NewMember(NewGroup(states, new(Words), noCauses{}, stopped{}), 0, nil, false).behind(1); got != 1 {
		t.Errorf("blames rank %d, want 1", got)
	}
}

// drowsy plays processes that were woken, of which some get up after they were looked at so
// many times.
type drowsy map[int]int

func (d drowsy) Wake(int)                        {}
func (d drowsy) Sleep(int, context.Context) bool { return true }
func (d drowsy) Yield() bool                     { return true }
func (d drowsy) Dead(int) (int, bool)            { return 0, false }
func (d drowsy) Asleep(sleeper int) bool {
	d[sleeper]--
	return d[sleeper] < 0
}

// nothing plays lanes without messages.
func nothing(int, int) uint64 { return 0 }

// So does a message: a token that is there for a rank that does not sleep any more says
// nothing, and ranks that get up late are not the one that does not.
func TestBehindOfMessages(t *testing.T) {
	const ranks, ever = 4, 1 << 30
	lane := func(rank int) int { return ranks + rank }
	for name, c := range map[string]struct {
		woken  drowsy
		up     int // the rank that has given up, 0: none
		blamed int
	}{
		"a circle":                      {drowsy{}, 0, 1},
		"one stopped in its sleep":      {drowsy{lane(3): ever}, 0, 3},
		"one that has given up before":  {drowsy{lane(2): ever, lane(3): ever}, 2, 3},
		"an event for calls, and lanes": {drowsy{1: ever, 2: ever, 3: ever, lane(3): ever}, 0, 3},
		"others that get up late":       {drowsy{lane(1): 3, lane(2): 4, lane(3): ever}, 0, 3},
	} {
		states := make([]*State, ranks)
		for r := range states { // each waits for the next
			states[r] = new(State)
			on := uint64((r+1)%ranks + 1)
			if r == c.up && r != 0 {
				on |= gaveUp
			}
			states[r].laneWaitOn.Store(on)
		}
		r := NewMember(NewGroup(states, new(Words), noCauses{}, c.woken), 0, nil, false)
		if got := NewP2P(r, false, nothing).Behind(1); got != c.blamed {
			t.Errorf("%s: blames rank %d, want %d", name, got, c.blamed)
		}
	}
}

// waking plays processes: all sleep but those in up, and a sleep is what sleep does.
type waking struct {
	stopped
	sleep func()
}

func (w waking) Sleep(int, context.Context) bool { w.sleep(); return true }

// A rank that is stopped after its lane was woken is blamed by those that wait for each other in
// a circle with it: whether what it waits for has come, or something else has, and wherever it is
// stopped.
func TestStoppedAfterItsSleep(t *testing.T) {
	const ranks, victim = 3, 2
	for _, c := range []struct {
		name   string
		before int // the rank that has sent something to the one that is stopped
	}{{"what it waits for has come", 0}, {"something else has come", 1}} {
		states := []*State{new(State), new(State), new(State)}
		var served [ranks][ranks]uint64
		count := func(by, of int) uint64 { return served[by][of] }
		up := stopped{}
		rest := &waking{stopped: up}
		lane := func(rank int) *P2P {
			return NewP2P(NewMember(NewGroup(states, new(Words), noCauses{}, rest), rank, nil, false), false, count)
		}
		asker := lane(0)
		blames := func(want int, where string) {
			t.Helper()
			if got := asker.Behind(1); got != want {
				t.Errorf("%s, it is stopped as it %s: blames rank %d, want %d", c.name, where, got, want)
			}
		}
		asker.WaitFor(1)
		states[1].laneWaitOn.Store(asker.edgeTo(1, victim))
		l := lane(victim)
		l.WaitFor(0)
		rest.sleep = func() {
			blames(1, "sleeps") // as any in the circle
			served[c.before][victim]++
			up[ranks+victim] = c.before != 0 // else nothing but the count tells
		}
		looks := 0
		l.Rest(func() bool {
			if looks++; looks < 3 {
				return false
			}
			blames(victim, "moves what has come")
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
		blames(1, "gives up") // as any in the circle
	}
}
