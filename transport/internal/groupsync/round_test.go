package groupsync

import (
	"context"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/stretchr/testify/require"
)

// sleepless simulates processes that live, of which this one must not wait.
type sleepless struct{ observed }

func (sleepless) Sleep(int, context.Context) bool { panic("the rank waits") }

// A rank that gives up in the last round of a call waits for no rank if the memory of the states is
// gone: it then has zeros in its place.
func TestLastRoundWithoutMemory(t *testing.T) {
	rest := sleepless{observed{looked: func() {}}}
	r := NewMember(NewGroup([]*State{new(State), new(State)}, new(Words), noCauses{}, rest), 0, nil, false)
	r.call.seq = 7
	round := uint64(3)
	require.False(t, r.ResolveRound(&round, func(int) *interleave.Uint64 { return new(interleave.Uint64) }))
	require.EqualValues(t, 3, round)
}
