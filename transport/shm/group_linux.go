package shm

import (
	"context"
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
	// Who has come is not looked at: none returns before all have, and the segment says so
	// then, which beats whatever has become of them.
	gone := func() error {
		return m.segment.safely(func() error { return m.Gone(members, func(int) bool { return false }) })
	}
	j := Job{Name: groupName(m.job.Name, number, members[0]), Rank: rank, Size: len(members)}
	if err := gone(); err != nil {
		removeOrphan(j)
		return nil, err
	}
	ctx, stop := watched(ctx, gone)
	defer stop()
	ep, err := join(ctx, j, m.geometry.ofGroup(j.Size), func(*segment) bool { return m.poll })
	if err != nil {
		removeOrphan(j)
	}
	return ep, err
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
