package shm

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// Group implements transport.Groups. The members join a new job.
func (m *mapped) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	rank, err := m.RankIn(members)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	// Groups without common members may have the same number; members[0] tells them apart.
	j := m.segment.header.subJob(rank, len(members), "-group-%d-%d", number, members[0])
	gone := m.checkMembers(number, members)
	ep, err := m.joinMembers(ctx, j, gone)
	if err != nil {
		return nil, m.cleanUpUnmade(number, j, err, gone)
	}
	return ep, nil
}

// joinMembers joins the members' job. It fails when gone returns an error.
func (m *mapped) joinMembers(ctx context.Context, j Job, gone func() error) (transport.Endpoint, error) {
	if err := gone(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	ctx, stop := watched(ctx, gone)
	defer stop()
	return join(ctx, j, m.geometry.ofGroup(j.Size), func(*segment) bool { return m.poll })
}

// checkMembers returns a function that returns an error if members will not come to the segment
// of a group. It does not exempt members that have come already: no member continues before all
// have come, and once they have, the segment's verdict takes precedence.
func (m *mapped) checkMembers(number uint64, members []int) func() error {
	return func() error {
		return m.segment.safely(func() error {
			if err := m.whyUnmade(number, members); err != nil {
				return err
			}
			return m.CheckMembers(members, func(int) bool { return false })
		})
	}
}

// cleanUpUnmade cleans up after a group that could not be made, tells the other members, and
// returns the reason. If other members gave up because one is dead, that death is the reason, and
// theirs is that of a member that comes too late.
func (m *mapped) cleanUpUnmade(number uint64, j Job, err error, gone func() error) error {
	removeOrphan(j, false)
	reason := gone()
	if reason == nil { // otherwise the other members know
		m.safely(func() { m.reportUnmade(number, groupsync.JoinFailure(j.Rank, err)) })
	}
	aborted, others := errors.AsType[*transport.AbortedError](err)
	lost, dead := errors.AsType[*transport.PeerLostError](reason)
	_, isLate := errors.AsType[*transport.TimeoutError](err)
	if others && dead && lost.Rank != aborted.By || isLate && reason != nil {
		return reason
	}
	return err
}

// reportUnmade tells the other members that this rank cannot make a group. (See unmade.)
func (m *mapped) reportUnmade(number uint64, why *transport.Failure) {
	m.unmadeMu.Lock()
	defer m.unmadeMu.Unlock()
	for k := range unmadeSlots {
		if u := m.unmade(m.Rank(), k); u.written.Load() != 0 && followsInCall(number, u.number.Load()) {
			return // the other members know
		}
	}

	u := m.unmade(m.Rank(), m.unmadeCount%unmadeSlots)
	m.unmadeCount++
	u.written.Store(0)
	encodeFailure(u.record[:], why)
	u.number.Store(number)
	u.written.Store(1)
}

// followsInCall reports whether the group with a number is the one with number before, or follows
// it in the same call. See transport.Groups.
func followsInCall(number, before uint64) bool {
	const call = 1<<transport.GroupCallBits - 1
	return number&call == before&call && number >= before
}

// whyUnmade returns why another member cannot make a group, or nil if none has reported that.
func (m *mapped) whyUnmade(number uint64, members []int) error {
	for i, rank := range members {
		for k := range unmadeSlots {
			u := m.unmade(rank, k)
			reported := u.number.Load()
			if rank == m.Rank() || u.written.Load() == 0 || !followsInCall(number, reported) {
				continue
			}
			why := decodeFailure(u.record[:])
			if why.By < 0 || why.By >= len(members) {
				why.By = i
			}
			if u.written.Load() == 0 || u.number.Load() != reported {
				continue // the report changed while it was read
			}
			if number != reported { // the ranks in it have other numbers here
				return &transport.AbortedError{By: i, Cause: errors.New("an earlier group of the same call was not made: " + why.Text)}
			}
			return groupsync.JoinError(why)
		}
	}
	return nil
}

func (m *mapped) unmade(rank, k int) *unmade {
	return at[unmade](m.arena, m.layout.unmade+(rank*unmadeSlots+k)*unmadeBytes)
}
