package dist

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// NewGroup makes a group of some of the job's ranks, in ascending order
// (torch.distributed.new_group); nil stands for all ranks. All ranks of the default group,
// or of the group of WithGroup, call it in the same order with the same ranks; ranks that
// are not members get nil.
//
// Groups are independent: calls of different groups may overlap, in different
// goroutines, and if one group fails the others continue. Errors of a group's calls use
// group ranks and name the group, with the label of NewGroup (WithLabel).
//
// *InvalidArgumentError rejects an unknown rank, a repeated rank, and an empty list. If
// ranks pass different lists, all get *MismatchError. If the group cannot be set up, its
// members get *InitializationFailedError, which names the group and uses its ranks.
func NewGroup(ranks []int, opts ...CallOption) (*ProcessGroup, error) {
	c := prepare(opts)
	if c.err != nil {
		return nil, c.err
	}
	if ranks == nil {
		ranks = c.group.Ranks()
	}

	members, err := c.group.groupRanks("dist.new_group", ranks)
	if err != nil {
		return nil, c.comm.Reject(c.ctx, err)
	}
	comm, err := c.comm.NewGroup(c.ctx, members, c.opts[:]...)
	return c.group.adopt(comm, err)
}

// groupRanks maps global ranks to group ranks, for an operation.
func (g *ProcessGroup) groupRanks(operation string, global []int) (ranks []int, err error) {
	ranks = make([]int, len(global))
	for i, r := range global {
		if ranks[i], err = g.groupRank(operation, r); err != nil {
			return nil, err
		}
	}
	return ranks, nil
}

// NewSubgroups divides the default group, or the group of WithGroup, into groups of size
// consecutive ranks (torch.distributed.new_subgroups). It returns this rank's group and, in
// the order of their ranks, all groups; those of other ranks are nil.
//
// *InvalidArgumentError rejects a size that does not divide the number of ranks. Otherwise
// it fails like NewGroup.
func NewSubgroups(size int, opts ...CallOption) (group *ProcessGroup, all []*ProcessGroup, err error) {
	c := prepare(opts)
	if c.err != nil {
		return nil, nil, c.err
	}

	n := c.comm.Size()
	if size < 1 || n%size != 0 {
		return nil, nil, c.comm.Reject(c.ctx, &InvalidArgumentError{
			Operation: "dist.new_subgroups",
			Message:   fmt.Sprintf("groups of %d ranks: the size must divide %d, the number of ranks", size, n),
		})
	}
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	return c.subgroups(slices.Collect(slices.Chunk(ranks, size)))
}

// NewSubgroupsByEnumeration makes a group of each list of global ranks, in ascending order
// (torch.distributed.new_subgroups_by_enumeration). It returns this rank's group, nil if it
// is in none, and all groups in the order of the lists; those of other ranks are nil.
//
// *InvalidArgumentError rejects a rank in two lists, and what NewGroup rejects. Otherwise it
// fails like NewGroup.
func NewSubgroupsByEnumeration(lists [][]int, opts ...CallOption) (group *ProcessGroup, all []*ProcessGroup, err error) {
	c := prepare(opts)
	if c.err != nil {
		return nil, nil, c.err
	}
	if len(lists) == 0 {
		return nil, nil, c.comm.Reject(c.ctx, &InvalidArgumentError{Operation: "dist.new_subgroups_by_enumeration", Message: "there are no lists of ranks"})
	}
	list := make(map[int]int) // by rank
	mapped := make([][]int, len(lists))
	for i, ranks := range lists {
		members, err := c.group.groupRanks("dist.new_subgroups_by_enumeration", ranks)
		if err != nil {
			return nil, nil, c.comm.Reject(c.ctx, err)
		}

		slices.Sort(members)
		for _, r := range members {
			if was, ok := list[r]; ok && was != i {
				return nil, nil, c.comm.Reject(c.ctx, &InvalidArgumentError{
					Operation: "dist.new_subgroups_by_enumeration",
					Message:   fmt.Sprintf("rank %d is in the lists %d and %d", c.comm.GlobalRank(r), was, i),
				})
			}
			list[r] = i
		}
		mapped[i] = members
	}
	return c.subgroups(mapped)
}

// subgroups makes groups that have no rank in common.
func (c *call) subgroups(lists [][]int) (group *ProcessGroup, all []*ProcessGroup, err error) {
	comms, err := c.comm.Form(c.ctx, lists, c.opts[:]...)
	if err != nil {
		return nil, nil, err
	}

	all = make([]*ProcessGroup, len(comms))
	for i, comm := range comms {
		if comm == nil {
			continue
		}
		if group, err = c.group.adopt(comm, nil); err != nil {
			return nil, nil, err
		}
		all[i] = group
	}
	return group, all, nil
}

// Split divides the default group, or the group of WithGroup: ranks with the same color, 0 or
// more, form a group, in the order of their keys; equal keys keep the order of ranks. A
// rank with a negative color is in no group and gets nil (MPI_Comm_split). It has the
// errors of NewGroup; see there.
func Split(color, key int, opts ...CallOption) (*ProcessGroup, error) {
	c := prepare(opts)
	comm, err := c.comm.Split(c.ctx, color, key, c.opts[:]...)
	return c.group.adopt(comm, c.result(err))
}

// adopt makes comm, a communicator made of g's, a group of g's rank; nil if comm is nil.
func (g *ProcessGroup) adopt(comm *ccl.Communicator, err error) (*ProcessGroup, error) {
	if err != nil || comm == nil {
		return nil, err
	}
	r := g.rank
	made := &ProcessGroup{rank: r, comm: comm, backend: g.backend}
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	if g.closed.Load() { // by another goroutine or the end of the worker
		_ = made.close()
		return nil, &explained{"", "the process group was destroyed while another was made of it", []error{ErrNotInitialized}}
	}
	made.failBy(r.job.failed)
	r.groups = append(r.groups, made)
	return made, nil
}
