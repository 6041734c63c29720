package dist

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// NewGroup makes a group of some of the job's ranks, in ascending order
// (torch.distributed.new_group). All ranks of the default group, or of the group
// of WithGroup, call it in the same order with the same ranks; ranks that are not members
// get nil.
//
// Groups are independent: calls of different groups may overlap, in different
// goroutines, and if one group fails the others continue. Errors of a group's calls use
// group ranks and name the group.
//
// *InvalidArgumentError rejects an unknown rank, a repeated rank, and an empty list. If
// ranks pass different lists, all get *MismatchError. If the group cannot be set up, its
// members get *InitializationFailedError, which names the group and uses its ranks.
func NewGroup(ranks []int, opts ...CallOption) (*ProcessGroup, error) {
	c := prepare(opts)
	if c.err != nil {
		return nil, c.err
	}
	var unknown error
	members := make([]int, len(ranks))
	for i, global := range ranks {
		var err error
		if members[i], err = c.group.GroupRank(global); err != nil {
			members[i], unknown = -1, err // ccl rejects it, and consumes the call's number
		}
	}
	comm, err := c.comm.NewGroup(c.ctx, members, c.opts[:]...)
	if _, invalid := errors.AsType[*InvalidArgumentError](err); invalid && unknown != nil {
		return nil, unknown
	}
	return c.group.adopt(comm, err)
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
		return nil, fmt.Errorf("dist: the process group was destroyed while another was made of it: %w", ErrNotInitialized)
	}
	r.groups = append(r.groups, made)
	return made, nil
}
