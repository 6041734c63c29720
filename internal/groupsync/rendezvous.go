package groupsync

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/goccl/goccl/transport"
)

// Seat returns this rank's rank in a group of members. It may be called by any goroutine.
func (r *Member) Seat(members []int) (rank int, err error) {
	for i, m := range members {
		switch {
		case m < 0 || m >= r.Size():
			return 0, fmt.Errorf("group of the ranks %v: there is no rank %d among %d", members, m, r.Size())
		case slices.Contains(members[:i], m):
			return 0, fmt.Errorf("group of the ranks %v: rank %d is there twice", members, m)
		}
	}
	rank = slices.Index(members, r.rank)
	if rank < 0 {
		return 0, fmt.Errorf("group of the ranks %v: rank %d, which is to be a member, is not among them", members, r.rank)
	}
	return rank, nil
}

// Gone is an error if a group of members cannot be formed any more: this rank has left
// their group, that has failed, or a member has left or died without having come. Its rank
// is that in the new group. Gone may be called by any goroutine.
func (r *Member) Gone(members []int, hasCome func(rank int) bool) error {
	switch {
	case r.closed.Load():
		return transport.ErrClosed
	case r.Failed():
		return transport.ErrFailed
	}
	for rank, m := range members {
		if left := r.group.states[m].left.Load() != 0; (left || r.dead(m)) && !hasCome(rank) {
			e := r.lost(m)
			e.Rank = rank
			return e
		}
	}
	return nil
}

// Rendezvous is where ranks that are goroutines form groups. Its zero value is one to
// which nobody has come.
type Rendezvous struct {
	mu   sync.Mutex
	open map[uint64][]*meeting // by number: groups that have no member in common
}

// meeting is a group to which not all members have come.
type meeting struct {
	members []int
	seats   []transport.Endpoint // nil where a member has come, or will not come
}

// Group is transport.Groups for a rank: the first member to come forms the endpoints of
// all. Every member takes its seat, or it is closed: by itself here, if it cannot be a member
// after all, or by Left. So the others, who may be in the new group already, wait for none that
// does not come.
func (v *Rendezvous) Group(ctx context.Context, r *Member, number uint64, members []int, form func(ranks int) []transport.Endpoint) (transport.Endpoint, error) {
	rank, err := r.Seat(members)
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
		return nil, fmt.Errorf("group %d: rank %d says that its ranks are %v, others %v: all have to say the same", number, r.rank, members, m.members)
	}
	hasCome := func(rank int) bool { return m.seats[rank] == nil }
	switch {
	case hasCome(rank) && r.closed.Load(): // Left has closed the seat
		return nil, transport.ErrClosed
	case hasCome(rank):
		return nil, fmt.Errorf("group %d of the ranks %v: rank %d has come to it already: every group needs a number of its own", number, members, r.rank)
	}
	if err = transport.ContextError(ctx); err == nil {
		err = r.Gone(members, hasCome)
	}
	ep := m.seats[rank]
	m.seats[rank] = nil
	if !slices.ContainsFunc(m.seats, func(ep transport.Endpoint) bool { return ep != nil }) {
		open = slices.Delete(open, i, i+1)
	}
	v.keep(number, open)
	if err != nil {
		ep.Fail(&transport.Failure{Kind: transport.FailureAborted, By: rank, Text: err.Error(), Cause: err})
		_ = ep.Close() // nothing is left to do about it
		return nil, err
	}
	return ep, nil
}

// Left closes the seats that a rank which has left its group has not taken.
func (v *Rendezvous) Left(rank int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for number, open := range v.open {
		for _, m := range open {
			if i := slices.Index(m.members, rank); i >= 0 && m.seats[i] != nil {
				_ = m.seats[i].Close()
				m.seats[i] = nil
			}
		}
		v.keep(number, slices.DeleteFunc(open, func(m *meeting) bool {
			return !slices.ContainsFunc(m.seats, func(ep transport.Endpoint) bool { return ep != nil })
		}))
	}
}

func (v *Rendezvous) keep(number uint64, open []*meeting) {
	switch {
	case len(open) == 0:
		delete(v.open, number)
	case v.open == nil:
		v.open = map[uint64][]*meeting{number: open}
	default:
		v.open[number] = open
	}
}
