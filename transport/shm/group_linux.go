package shm

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// Group implements transport.Groups: the members join a job of their own.
func (m *mapped) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	rank, err := m.Seat(members)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	// Groups without common members, of which members[0] is the first, may have one number.
	j := m.segment.header.part(rank, len(members), "-group-%d-%d", number, members[0])
	gone := m.goneOf(members)
	if err := gone(); err != nil {
		removeOrphan(j, false)
		return nil, err
	}
	ctx, stop := watched(ctx, gone)
	defer stop()
	ep, err := join(ctx, j, m.geometry.ofGroup(j.Size), func(*segment) bool { return m.poll })
	if err != nil {
		return nil, m.notMade(j, err, gone)
	}
	return ep, nil
}

// goneOf returns what says why some ranks will not all come to the segment of a group. Who has come already is not looked at: none goes on before all
// have, and the segment says so then, which beats whatever has become of them.
func (m *mapped) goneOf(members []int) func() error {
	return func() error {
		return m.segment.safely(func() error { return m.Gone(members, func(int) bool { return false }) })
	}
}

// notMade cleans up after a group that could not be made, and returns why.
// Where others have given up because one is dead, that is the reason.
func (m *mapped) notMade(j Job, err error, gone func() error) error {
	removeOrphan(j, false)
	reason := gone()
	aborted, others := errors.AsType[*transport.AbortedError](err)
	lost, dead := errors.AsType[*transport.PeerLostError](reason)
	if others && dead && lost.Rank != aborted.By {
		return reason
	}
	return err
}
