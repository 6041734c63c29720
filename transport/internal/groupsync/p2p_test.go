package groupsync

import (
	"errors"
	"testing"

	"github.com/goccl/goccl/transport"
)

// departed simulates processes of which all except rank 0 are dead.
type departed struct{ stopped }

func (departed) Dead(rank int) (int, bool) { return 7, rank != 0 }

// Another goroutine may call Lost while Rest notices that a rank has died.
func TestLostBesideRest(t *testing.T) {
	states := []*State{new(State), new(State)}
	l := NewP2P(NewMember(NewGroup(states, new(Words), noCauses{}, departed{}), 0, nil, false), false, nothing)
	asked := make(chan struct{})
	result := make(chan error)

	go func() {
		for first := true; ; first = false {
			err := l.Lost(1)
			if first {
				close(asked)
			}
			if err != nil {
				result <- err
				return
			}
		}
	}()

	<-asked
	l.suspicion.looked = l.suspicion.looked.AddDate(1, 0, 0) // a while ago
	l.Rest(func() bool { return false }, true)
	err := <-result
	lost, ok := errors.AsType[*transport.PeerLostError](err)
	if !ok || lost.Rank != 1 || lost.PID != 7 {
		t.Errorf("got %v", err)
	}
}
