package groupsync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// RankIn returns this rank's rank in a group of members. Any goroutine may call it.
func (r *Member) RankIn(members []int) (rank int, err error) {
	for i, m := range members {
		switch {
		case m < 0 || m >= r.Size():
			return 0, fmt.Errorf("group of ranks %v: rank %d does not exist in a group of %d", members, m, r.Size())
		case slices.Contains(members[:i], m):
			return 0, fmt.Errorf("group of ranks %v: rank %d is listed twice", members, m)
		}
	}

	rank = slices.Index(members, r.rank)
	if rank < 0 {
		return 0, fmt.Errorf("group of ranks %v: rank %d called Group but is not a member", members, r.rank)
	}
	return rank, nil
}

var errOuterFailed = fmt.Errorf("%w that this one is made of", transport.ErrFailed)

// CheckMembers returns an error if members can no longer form a group: this rank has left this
// group, this group has failed, or a member has left or died before it came. errors.As then finds
// a *transport.PeerLostError with the member's rank in the new group. hasCome takes a rank in the
// new group. Any goroutine may call CheckMembers.
func (r *Member) CheckMembers(members []int, hasCome func(rank int) bool) error {
	switch {
	case r.isClosed.Load():
		return transport.ErrClosed
	case r.Failed():
		return errOuterFailed
	}
	for rank, m := range members {
		if m == r.rank {
			continue // it may leave at any moment, which the caller then learns as ErrClosed
		}
		if (r.group.HasDeparted(m) || r.isDead(m)) && !hasCome(rank) {
			e := r.lostError(m)
			e.Rank = rank
			return e
		}
	}
	return nil
}

// Rendezvous forms groups of ranks that are goroutines. Its zero value is ready to use.
type Rendezvous struct {
	mu   interleave.Mutex
	open map[uint64][]*meeting // by number; groups of one number have no member in common
}

// meeting is a group for which it still waits for members.
type meeting struct {
	members []int
	seats   []transport.Endpoint // by rank; nil if the member has come or will not come
}

// Group implements transport.Groups for a rank. The first member to come forms the endpoints
// of all members. Each member takes its seat, or its seat is closed: here if the member cannot
// join after all, otherwise by CloseSeats. Other members may already use the new group; they
// therefore never wait for a member that does not come.
func (v *Rendezvous) Group(ctx context.Context, r *Member, number uint64, members []int, form func(ranks int) []transport.Endpoint) (transport.Endpoint, error) {
	rank, err := r.RankIn(members)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()

	open := v.open[number]
	i := slices.IndexFunc(open, func(m *meeting) bool { return slices.Contains(m.members, r.rank) })
	if i < 0 {
		i, open = len(open), append(open, &meeting{slices.Clone(members), form(len(members))})
	}
	m := open[i]
	if !slices.Equal(m.members, members) {
		return nil, fmt.Errorf("group %d: rank %d passed the members %v, another rank %v: all members must pass the same", number, r.rank, members, m.members)
	}
	hasCome := func(rank int) bool { return m.seats[rank] == nil }
	switch {
	case hasCome(rank) && r.isClosed.Load(): // CloseSeats has closed the seat
		return nil, transport.ErrClosed
	case hasCome(rank):
		return nil, fmt.Errorf("group %d of ranks %v: rank %d has already joined it: give each group another number", number, members, r.rank)
	}
	err = transport.ContextError(ctx)
	if err == nil || errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		// Nobody waits here: after its deadline the join that follows says who is missing.
		err = r.CheckMembers(members, hasCome)
	}
	ep := m.seats[rank]
	m.seats[rank] = nil
	v.dropFull(number, open)
	if err != nil {
		ep.Fail(&transport.Failure{Kind: transport.FailureAborted, By: rank, Text: err.Error(), Cause: err})
		_ = ep.Close() // err is the error to report
		return nil, err
	}
	return ep, nil
}

// CloseSeats closes the seats that rank has not taken. Its caller is the rank, which has left its
// group.
func (v *Rendezvous) CloseSeats(rank int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(v.open)) {
		open := v.open[number]
		for _, m := range open {
			if i := slices.Index(m.members, rank); i >= 0 && m.seats[i] != nil {
				_ = m.seats[i].Close()
				m.seats[i] = nil
			}
		}
		v.dropFull(number, open)
	}
}

// FailSeats fails the groups for which it still waits for members: the group that they are made of
// has failed, and who comes from now on gives up.
func (v *Rendezvous) FailSeats() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(v.open)) {
		for _, m := range v.open[number] {
			i := slices.IndexFunc(m.seats, func(ep transport.Endpoint) bool { return ep != nil })
			m.seats[i].Fail(&transport.Failure{Kind: transport.FailureAborted, By: i, Text: errOuterFailed.Error(), Cause: errOuterFailed})
		}
	}
}

// dropFull drops those of the groups with a number that wait for no members any more.
func (v *Rendezvous) dropFull(number uint64, open []*meeting) {
	open = slices.DeleteFunc(open, func(m *meeting) bool {
		return !slices.ContainsFunc(m.seats, func(ep transport.Endpoint) bool { return ep != nil })
	})
	switch {
	case len(open) == 0:
		delete(v.open, number)
	case v.open == nil:
		v.open = map[uint64][]*meeting{number: open}
	default:
		v.open[number] = open
	}
}
