package groupsync

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
)

// observed simulates processes that live. Dead calls looked.
type observed struct{ looked func() }

func (o observed) Wake(int)                        {}
func (o observed) Sleep(int, context.Context) bool { return true }
func (o observed) Yield() bool                     { return true }
func (o observed) LostCore(int)                    {}
func (o observed) IsAsleep(int) bool               { return true }
func (o observed) Dead(int) (int, bool)            { o.looked(); return 0, false }

// A rank that leaves while CheckMembers looks at the members is not lost to itself.
func TestGoneWhileLeaving(t *testing.T) {
	var r *Member
	leave := observed{looked: func() { r.Leave() }}
	r = NewMember(NewGroup([]*State{new(State), new(State)}, new(Words), noCauses{}, leave), 0, nil, false)
	noneHasCome := func(int) bool { return false }

	require.NoError(t, r.CheckMembers([]int{1, 0}, noneHasCome))
	require.ErrorIs(t, r.CheckMembers([]int{1, 0}, noneHasCome), transport.ErrClosed)
}

// A group that has failed, of which another one is made, is told apart from that one.
func TestFailedWhileForming(t *testing.T) {
	alive := observed{looked: func() {}}
	r := NewMember(NewGroup([]*State{new(State), new(State)}, new(Words), noCauses{}, alive), 0, nil, false)
	r.Fail(&transport.Failure{Kind: transport.FailureAborted})
	err := r.CheckMembers([]int{1, 0}, func(int) bool { return false })
	require.ErrorIs(t, err, transport.ErrFailed)
	require.EqualError(t, err, "the group has failed that this one is made of")

	r = NewMember(NewGroup([]*State{new(State), new(State)}, new(Words), noCauses{}, alive), 0, nil, false)
	r.Fail(&transport.Failure{Kind: transport.FailurePeerLost, Ranks: []int{1}, PID: 42})
	err = r.CheckMembers([]int{1, 0}, func(int) bool { return false })
	require.ErrorIs(t, err, transport.ErrFailed)
	lost, ok := errors.AsType[*transport.PeerLostError](err)
	require.True(t, ok && lost.Rank == 0 && lost.PID == 42, "%v", err)
	require.EqualError(t, r.CheckMembers([]int{0}, func(int) bool { return false }), "the group has failed that this one is made of")
}
