package shm

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/goccl/goccl/transport"
)

// Group implements transport.Groups: the members join a job of their own.
func (m *mapped) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	rank, err := m.Seat(members)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	j := Job{Name: groupName(m.job.Name, number, members[0]), Rank: rank, Size: len(members)}
	gone := m.goneOf(members)
	if err := gone(); err != nil {
		removeOrphan(j)
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

// goneOf returns what says why some ranks will not all come to a segment: it is that of a
// group or of a region. Who has come already is not looked at: none goes on before all
// have, and the segment says so then, which beats whatever has become of them.
func (m *mapped) goneOf(members []int) func() error {
	return func() error {
		return m.segment.safely(func() error { return m.Gone(members, func(int) bool { return false }) })
	}
}

// notMade cleans up after a group or a region that could not be made, and returns why.
// Where others have given up because one is dead, that is the reason.
func (m *mapped) notMade(j Job, err error, gone func() error) error {
	removeOrphan(j)
	reason := gone()
	aborted, others := errors.AsType[*transport.AbortedError](err)
	lost, dead := errors.AsType[*transport.PeerLostError](reason)
	if others && dead && lost.Rank != aborted.By {
		return reason
	}
	return err
}

// maxGroupName is the length of the longest name of a group: it leaves room for those of
// regions.
const maxGroupName = 96

// groupName returns the job's name of a group of a job's ranks: groups without common
// members, of which first is the first, may have one number. Long names, as of groups in
// groups in groups, end in a hash.
func groupName(job string, number uint64, first int) string {
	name := fmt.Sprintf("%s-group-%d-%d", strings.TrimPrefix(job, "/"), number, first)
	if len(name) <= maxGroupName {
		return name
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // it cannot fail
	return fmt.Sprintf("%s-%016x", name[:maxGroupName-17], hash.Sum64())
}
