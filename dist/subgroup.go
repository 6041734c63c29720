package dist

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// NewGroup makes a group of some of the job's ranks, in ascending order however
// they are given (torch.distributed.new_group). All ranks of the default group, or
// of that of WithGroup, call it in the same order with the same ranks; those that
// are not among them get nil, with which they have nothing to do.
//
// A group has its own calls and its own failure: those of different groups may
// overlap, in different goroutines, and the others go on when one fails. In errors
// of its calls ranks are group ranks; the error says of which group.
//
// Refused with *InvalidArgumentError (a rank that is not there, the same one twice,
// or none at all). Ranks that name different ones all get *MismatchError; where the
// new group cannot be set up its members get *InitializationFailedError, which names
// it and counts ranks as it does.
func NewGroup(ranks []int, opts ...CallOption) (*ProcessGroup, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	var stranger error
	members := make([]int, len(ranks))
	for i, global := range ranks {
		if members[i], err = c.group.GroupRank(global); err != nil {
			members[i], stranger = -1, err // refused below, where it counts
		}
	}
	comm, err := c.comm.NewGroup(c.ctx, members, c.opts[:c.n]...)
	if _, refused := errors.AsType[*InvalidArgumentError](err); refused && stranger != nil {
		return nil, stranger
	}
	return c.group.adopt(comm, err)
}

// Split makes groups of the ranks of the default group, or of that of WithGroup:
// those that bring the same color, 0 or more, are one, in the order of their keys,
// and of their ranks where those are alike. A rank whose color is negative is in
// none and gets nil (MPI's MPI_Comm_split). See NewGroup for what groups are; its
// errors are those of NewGroup.
func Split(color, key int, opts ...CallOption) (*ProcessGroup, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	comm, err := c.comm.Split(c.ctx, color, key, c.opts[:c.n]...)
	return c.group.adopt(comm, err)
}

// adopt gives the rank of g a group that was made of g. A nil comm is none.
func (g *ProcessGroup) adopt(comm *ccl.Communicator, err error) (*ProcessGroup, error) {
	if err != nil || comm == nil {
		return nil, err
	}
	r := g.rank
	made := &ProcessGroup{rank: r, comm: comm, backend: g.backend}
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	if g.closed.Load() { // meanwhile, by another goroutine or the end of the worker
		_ = made.close()
		return nil, fmt.Errorf("dist: the process group was destroyed while another was made of it: %w", ErrNotInitialized)
	}
	r.groups = append(r.groups, made)
	return made, nil
}

// disown takes a group that is not the default one away from its rank.
func (g *ProcessGroup) disown() {
	g.rank.job.mu.Lock()
	defer g.rank.job.mu.Unlock()
	g.rank.groups = slices.DeleteFunc(g.rank.groups, func(other *ProcessGroup) bool { return other == g })
}
