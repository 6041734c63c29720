package lines

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
func (s stopped) Woken(rank int) bool             { return s[rank] }
func (s stopped) Dead(int) (int, bool)            { return 0, false }

type noCauses struct{}

func (noCauses) Store(int, *transport.Failure) {}
func (noCauses) Load(int) *transport.Failure   { return nil }

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
