package ccl

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/transport"
)

// Split makes groups of the ranks: those that bring the same color, 0 or more, are one,
// and their order in it is that of their keys, and of their ranks where those are alike.
// A rank whose color is negative is in none and gets nil.
//
// A new group has its own calls and its own failure: calls on different groups may run
// at the same time, and closing one leaves the others alone. It is configured as this
// one, but for the topology, which is a ring, and what is for other numbers of ranks. If
// the configured algorithm is not for the new group (a grid, an entry with a world size of
// its own), rules choose, or without rules the first entry that can; Explain and
// LastChoice say so.
//
// It is collective. Fails with *CollectiveFailedError, or, if the new group could not
// be set up while this one lives on, with *InitializationFailedError, which names the
// new group and counts ranks as it does.
func (c *Communicator) Split(ctx context.Context, color, key int, opts ...CallOption) (*Communicator, error) {
	const coll = collSplit
	if err := c.start(ctx, coll, opts); err != nil {
		return nil, err
	}
	c.lengths.mine = append(c.lengths.mine[:0], int64(color), int64(key))
	err := c.exchangeLengths(ctx, coll, 0, 0, opts)
	number := c.seq
	var members []int
	for r := 0; err == nil && r < c.size; r++ {
		if color >= 0 && c.lengths.all[2*r] == int64(color) {
			members = append(members, r)
		}
	}
	slices.SortStableFunc(members, func(r, s int) int {
		return cmp.Compare(c.lengths.all[2*r+1], c.lengths.all[2*s+1])
	})
	if c.end(err) != nil || members == nil {
		return nil, err
	}
	return c.group(ctx, number, members)
}

// NewGroup makes a group of some of the ranks, in ascending order however they are
// given (torch.distributed.new_group). All ranks of this group call it, with the same
// ranks; those that are not among them get nil. The group is like one of Split.
//
// Refused with *InvalidArgumentError (no rank of this group, the same one twice, or
// none at all); fails like Split. If ranks name different groups, *MismatchError says
// so with the field "ranks".
func (c *Communicator) NewGroup(ctx context.Context, ranks []int, opts ...CallOption) (*Communicator, error) {
	const coll = collNewGroup
	if err := c.start(ctx, coll, opts); err != nil {
		return nil, err
	}
	members := slices.Sorted(slices.Values(ranks))
	if err := c.checkMembers(members); err != nil {
		return nil, c.end(c.refuse(err))
	}
	r := c.ask(coll, 0, Buffer{}, Buffer{}, opts)
	r.counts, r.lengths = members, hashCounts(members)
	err := c.step(ctx, r)
	number := c.seq
	if c.end(err) != nil || !slices.Contains(members, c.rank) {
		return nil, err
	}
	return c.group(ctx, number, members)
}

func (c *Communicator) checkMembers(members []int) error {
	operation := collNewGroup.String()
	if len(members) == 0 {
		return &InvalidArgumentError{operation, "the group has no ranks"}
	}
	for i, r := range members {
		switch {
		case r < 0 || r >= c.size:
			return &InvalidArgumentError{operation, fmt.Sprintf("%d is not a rank of a group of %d (0 to %d)", r, c.size, c.size-1)}
		case i > 0 && r == members[i-1]:
			return &InvalidArgumentError{operation, fmt.Sprintf("rank %d is named twice", r)}
		}
	}
	return nil
}

// group sets up the group of some ranks, this one among them, that the call with that
// number makes.
func (c *Communicator) group(ctx context.Context, number uint64, members []int) (*Communicator, error) {
	name := fmt.Sprintf("of %s, made by call %d", transport.RanksText(members), c.number(number))
	if c.name != "" {
		name += " of the group " + c.name
	}
	failed := func(err error) error { return initializationFailed(c.ep.Name(), name, err) }
	selector, err := c.selector.ForGroup(len(members), "a group "+name)
	if err != nil {
		return nil, failed(err)
	}
	within := ctx
	if limit := c.selector.Timeout(); limit > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	ep, err := c.connect(within, number, members)
	if err != nil {
		return nil, failed(err)
	}
	var global []int
	for _, r := range members {
		global = append(global, c.GlobalRank(r))
	}
	return New(ctx, ep, WithSelector(selector), WithLogger(c.logger), WithFailures(c.tell), Option{name: name, global: global})
}

// connect returns the endpoint of a group of members.
func (c *Communicator) connect(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	if !c.life.hold() {
		return nil, ErrClosed
	}
	defer c.drop() //nolint:errcheck // Close has returned already
	groups, ok := c.ep.(transport.Groups)
	if !ok {
		return nil, fmt.Errorf("the transport %s has no groups", c.ep.Name())
	}
	return groups.Group(ctx, number, members)
}

// GlobalRank returns which rank of the first group, from which this one was made, the
// group's rank is, 0 <= rank < Size. In the first group they are the same.
func (c *Communicator) GlobalRank(rank int) int {
	if c.global == nil {
		return rank
	}
	return c.global[rank]
}

// Name returns what errors call the group: "" is the first.
func (c *Communicator) Name() string { return c.name }
