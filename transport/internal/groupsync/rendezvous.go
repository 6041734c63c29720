package groupsync

import (
	"context"
	"errors"
	"fmt"
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
		return r.outerError(members)
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

// outerError returns why members of this group, which has failed, form no group. It finds who is
// lost or late if those are members.
func (r *Member) outerError(members []int) error {
	f := r.Failure()
	if f == nil || f.Kind != transport.FailurePeerLost && f.Kind != transport.FailureTimeout && f.Kind != transport.FailureStuck {
		return errOuterFailed
	}

	about := *f
	about.By = slices.Index(members, f.By)
	about.Ranks = nil
	for _, rank := range f.Ranks {
		about.Ranks = append(about.Ranks, slices.Index(members, rank))
	}
	if about.By < 0 || slices.Contains(about.Ranks, -1) {
		return errOuterFailed
	}
	return fmt.Errorf("%w: %w", errOuterFailed, JoinError(&about))
}

// AreWaiting reports whether some of the missing members of a new group wait in a call of this one,
// for another rank. Any goroutine may call AreWaiting.
func (r *Member) AreWaiting(members, missing []int) bool {
	r.catchUp()
	return slices.ContainsFunc(missing, func(rank int) bool { return r.group.states[members[rank]].waitOn.Load() != 0 })
}

// Rendezvous forms groups of ranks that are goroutines. Its zero value is ready to use.
//
// It has no lock: a rank that is stopped in it would keep others from coming, and these would be
// taken for the ones that are late.
type Rendezvous struct {
	open interleave.Pointer[[]*meeting] // immutable; groups of one number have no member in common
}

// meeting is a group that its members come to.
type meeting struct {
	number  uint64
	members []int
	seats   []seat // by rank
}

// seat is the endpoint of a member.
type seat struct {
	transport.Endpoint
	isTaken interleave.Bool // the member has come or will not come
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
	m := v.meetingOf(r.rank, number, members, form)
	if !slices.Equal(m.members, members) {
		return nil, fmt.Errorf("group %d: rank %d passed the members %v, another rank %v: all members must pass the same", number, r.rank, members, m.members)
	}
	ep := &m.seats[rank]
	switch {
	case ep.isTaken.CompareAndSwap(false, true):
		v.dropFull()
	case r.isClosed.Load(): // CloseSeats has closed the seat
		return nil, transport.ErrClosed
	default:
		return nil, fmt.Errorf("group %d of ranks %v: rank %d has already joined it: give each group another number", number, members, r.rank)
	}

	// It looks at the group only now: FailSeats passes over this seat, or the rank finds the failure.
	err = transport.ContextError(ctx)
	if err == nil || errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		// Nobody waits here: after its deadline the join that follows says who is missing.
		err = r.CheckMembers(members, func(rank int) bool { return m.seats[rank].isTaken.Load() })
	}
	if err != nil {
		ep.Fail(&transport.Failure{Kind: transport.FailureAborted, By: rank, Text: err.Error(), Cause: err})
		_ = ep.Close() // err is the error to report
		return nil, err
	}
	return ep.Endpoint, nil
}

// meetingOf returns the group with a number that a rank is a member of. The first to come makes it.
func (v *Rendezvous) meetingOf(rank int, number uint64, members []int, form func(ranks int) []transport.Endpoint) *meeting {
	var made *meeting
	for {
		open, all := v.load()
		for _, m := range all {
			if m.number == number && slices.Contains(m.members, rank) {
				return m
			}
		}

		if made == nil {
			made = &meeting{number: number, members: slices.Clone(members), seats: make([]seat, len(members))}
			for i, ep := range form(len(members)) {
				made.seats[i].Endpoint = ep
			}
		}
		if further := append(slices.Clone(all), made); v.open.CompareAndSwap(open, &further) {
			return made
		}
	}
}

// load returns the groups that members come to, and the word's value.
func (v *Rendezvous) load() (open *[]*meeting, all []*meeting) {
	if open = v.open.Load(); open != nil {
		all = *open
	}
	return open, all
}

// CloseSeats closes the seats that rank has not taken. Its caller is the rank, which has left its
// group.
func (v *Rendezvous) CloseSeats(rank int) {
	_, all := v.load()
	for _, m := range all {
		if i := slices.Index(m.members, rank); i >= 0 && m.seats[i].isTaken.CompareAndSwap(false, true) {
			_ = m.seats[i].Close()
		}
	}
	v.dropFull()
}

// FailSeats fails the groups for which it still waits for members: the group that they are made of
// has failed, and who comes from now on gives up.
func (v *Rendezvous) FailSeats() {
	_, all := v.load()
	for _, m := range all {
		if i := m.free(); i >= 0 {
			m.seats[i].Fail(&transport.Failure{Kind: transport.FailureAborted, By: i, Text: errOuterFailed.Error(), Cause: errOuterFailed})
		}
	}
}

// free returns the first member that may still come, -1 if there is none.
func (m *meeting) free() int {
	for i := range m.seats {
		if !m.seats[i].isTaken.Load() {
			return i
		}
	}
	return -1
}

// dropFull drops the groups that wait for no members any more.
func (v *Rendezvous) dropFull() {
	for {
		open, all := v.load()
		rest := slices.DeleteFunc(slices.Clone(all), func(m *meeting) bool { return m.free() < 0 })
		if len(rest) == len(all) || v.open.CompareAndSwap(open, &rest) {
			return
		}
	}
}
