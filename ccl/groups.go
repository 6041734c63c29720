package ccl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/transport"
)

// Split divides the ranks into groups: the ranks that bring the same color, 0 or more, form one.
// They are ordered by their keys, and by their ranks where keys are equal. A rank with a negative
// color is in no group and gets nil.
//
// A new group has its own calls and its own failure: calls on different groups may run at the same
// time, and closing one does not affect the others. A group of all ranks in their order has the
// configuration and the topology of this group (MPI_Comm_dup). Others have the configuration, but
// their topology is a ring, and entries with a world size of their own are left out unless it is the
// new group's. If the configured algorithm cannot serve the new group (a grid, or such an entry),
// the rules choose, or, without rules, the first entry that can; LastChoice reports it.
//
// Split is collective. It fails with *CollectiveFailedError, also if this group fails, by any of
// its ranks, while members of the new one meet; or, if only the new group could not
// be set up, with *InitializationFailedError, which names the new group and its ranks.
func (c *Communicator) Split(ctx context.Context, color, key int, opts ...CallOption) (*Communicator, error) {
	const coll = collSplit
	if err := c.start(ctx, coll, opts); err != nil {
		return nil, err
	}
	c.lengths.local = append(c.lengths.local[:0], int64(color), int64(key))
	err := c.exchangeLengths(ctx, &arguments{coll: coll}, opts)
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
	made, err := c.group(ctx, number, members)
	if err != nil {
		return nil, c.groupError(coll, number, opts, err)
	}
	return made, nil
}

// NewGroup makes a group of some of the ranks, always in ascending order
// (torch.distributed.new_group). All ranks of this group call it, with the same ranks; those that
// are not members get nil. The group is like one of Split.
//
// Rejected with *InvalidArgumentError (not a rank of this group, a rank twice, or no ranks). Fails
// like Split. If ranks name different groups, it fails with *MismatchError, field "ranks".
func (c *Communicator) NewGroup(ctx context.Context, ranks []int, opts ...CallOption) (*Communicator, error) {
	made, err := c.form(ctx, collNewGroup, [][]int{slices.Sorted(slices.Values(ranks))}, opts)
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

// Form makes a group of each list of ranks and returns them in the order of the lists; those that
// this rank is not in are nil. A list gives the order of the ranks in its group. Lists may have
// ranks in common, or be equal. All ranks of this group call Form, with the same lists. The groups
// are made one after another, in the same order on all ranks, and are like those of Split.
//
// Rejected with *InvalidArgumentError (not a rank of this group, a rank twice in a list, a list
// without ranks, or more than 65,536 lists). Fails like Split; if one of this rank's groups could
// not be set up, Form closes those made before, and members of those made later get the error as
// well. If ranks pass different lists, it fails with *MismatchError, whose field names the first
// list that differs, such as "list 2"; lists count from 0.
func (c *Communicator) Form(ctx context.Context, lists [][]int, opts ...CallOption) ([]*Communicator, error) {
	return c.form(ctx, collForm, lists, opts)
}

// maxLists is the number of groups that one call can make. See groupNumber.
const maxLists = 1 << (64 - transport.GroupCallBits)

// groupNumber returns the number by which the transport tells the i-th group apart that call seq
// makes from others with common members.
func groupNumber(seq uint64, i int) uint64 { return seq | uint64(i)<<transport.GroupCallBits }

func (c *Communicator) form(ctx context.Context, coll Collective, lists [][]int, opts []CallOption) ([]*Communicator, error) {
	if err := c.start(ctx, coll, opts); err != nil {
		return nil, err
	}
	if err := c.checkLists(coll, lists); err != nil {
		return nil, c.end(c.rejectCall(&arguments{coll: coll}, opts, err))
	}
	r := c.ask(coll, 0, Buffer{}, Buffer{}, opts)
	r.counts = flatten(lists)
	r.lengths = fingerprint.HashCounts(r.counts)
	err := c.step(ctx, r)
	number := c.seq
	if err = c.end(err); err != nil {
		return nil, err
	}
	// Members of a group wait until this rank comes, or gives up with a reason.
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	made := make([]*Communicator, len(lists))
	for i, members := range lists {
		if !slices.Contains(members, c.rank) {
			continue
		}
		group, failed := c.group(ctx, groupNumber(number, i), members)
		if made[i] = group; failed != nil && err == nil {
			err = failed
			giveUp(errors.New(initializationCause(err).Error())) // the ranks in it are those of this group
		}
	}
	if err == nil {
		return made, nil
	}
	for _, group := range made {
		if group != nil {
			_ = group.Close() // the error says why
		}
	}
	return nil, c.groupError(coll, number, opts, err)
}

// groupError returns err, the error of setting up a group, as the error of call number seq, which made it: the
// failure of this group, if that has failed meanwhile.
func (c *Communicator) groupError(coll Collective, seq uint64, opts []CallOption, err error) error {
	if !c.life.Hold() {
		return outsideCall(coll, opts, err)
	}
	defer c.drop() //nolint:errcheck // Close has returned already
	f := c.ep.Failure()
	if f == nil {
		return outsideCall(coll, opts, err)
	}
	o := mergeCallOptions(opts)
	failed := c.failureError(coll, f, "making the group")
	failed.Seq = c.number(seq)
	e := newCallError(coll.String(), &o, failed)
	e.Seq = failed.Seq
	return c.notify(e)
}

func (c *Communicator) checkLists(coll Collective, lists [][]int) error {
	if len(lists) > maxLists {
		return &InvalidArgumentError{coll.String(), fmt.Sprintf("%d lists: at most %d groups are made at once", len(lists), maxLists)}
	}
	for i, members := range lists {
		if err := c.checkMembers(members); err != nil {
			where := ""
			if coll == collForm {
				where = fmt.Sprintf("list %d: ", i)
			}
			return &InvalidArgumentError{coll.String(), where + err.Error()}
		}
	}
	return nil
}

// checkMembers checks the ranks of a group to be.
func (c *Communicator) checkMembers(members []int) error {
	if len(members) == 0 {
		return errors.New("the group has no ranks")
	}
	named := make([]bool, c.size)
	for _, r := range members {
		switch {
		case r < 0 || r >= c.size:
			return fmt.Errorf("%d is not a rank of a group of %d (0 to %d)", r, c.size, c.size-1)
		case named[r]:
			return fmt.Errorf("rank %d is named twice", r)
		}
		named[r] = true
	}
	return nil
}

// flatten returns lists as one: before the elements of each list is their number.
func flatten(lists [][]int) (flat []int) {
	for _, list := range lists {
		flat = append(append(flat, len(list)), list...)
	}
	return flat
}

// listsText returns flattened lists as text, a line for each list.
func listsText(flat []int) string {
	var text strings.Builder
	for len(flat) > 0 {
		n := 1 + flat[0]
		fmt.Fprintln(&text, flat[1:n])
		flat = flat[n:]
	}
	return text.String()
}

// group sets up a group of some ranks, this rank among them. number tells it apart, see
// groupNumber.
func (c *Communicator) group(ctx context.Context, number uint64, members []int) (*Communicator, error) {
	name := fmt.Sprintf("of %s, made by call %d", transport.RanksText(members), c.number(number&(1<<transport.GroupCallBits-1)))
	if c.placedRanks() == nil {
		return c.subgroup(ctx, number, members, name, c.selector.ForGroup)
	}
	return c.subgroup(ctx, number, members, name, partial{Selector: c.selector}.ForGroup)
}

// subgroup is group with a name, to which the name of this group is added, and with a function that returns the Selector unless that is
// this group's.
func (c *Communicator) subgroup(
	ctx context.Context, number uint64, members []int, name string, selectorFor func(ranks int, origin string) (Selector, error),
) (*Communicator, error) {
	if c.name != "" {
		name += " of the group " + c.name
	}
	failed := func(err error) error { return initializationFailed(c.ep.Name(), name, err) }
	if !c.life.HoldOpen() {
		return nil, failed(ErrClosed)
	}
	defer c.drop() //nolint:errcheck // Close has returned already
	selector := c.selector
	if !inOrder(members, c.size) {
		var err error
		if selector, err = selectorFor(len(members), "a group "+name); err != nil {
			return nil, failed(err)
		}
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
	return New(ctx, ep, WithSelector(selector), WithLogger(c.logger), WithFailures(c.tell), c.partOf(name, number, members))
}

// partOf returns the option of a group of some ranks of this one, which uses its recorder.
func (c *Communicator) partOf(name string, number uint64, members []int) Option {
	o := Option{name: name, number: number}
	for _, r := range members {
		o.global = append(o.global, c.GlobalRank(r))
	}
	if len(members) > 1 {
		c.recorder.users.Add(1) // while this communicator still uses it
		o.recorder = c.recorder
	}
	return o
}

// inOrder reports whether members are all ranks, in their order.
func inOrder(members []int, size int) bool {
	for i, r := range members {
		if r != i {
			return false
		}
	}
	return len(members) == size
}

// connect returns the endpoint of a group of members.
func (c *Communicator) connect(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	groups, ok := c.ep.(transport.Groups)
	if !ok {
		return nil, fmt.Errorf("the transport %s has no groups", c.ep.Name())
	}
	return groups.Group(ctx, number, members)
}

// GlobalRank maps a rank of this group, 0 <= rank < Size, to its rank in the first group, from
// which this group was made. In the first group the two are the same. If c is nil, it returns -1.
func (c *Communicator) GlobalRank(rank int) int {
	switch {
	case c == nil:
		return -1
	case c.global == nil:
		return rank
	}
	return c.global[rank]
}

// isOutside reports whether a rank stands for one of the job that is not in this group: package dist, which maps ranks of the
// job to those of the group, has -1 for it.
func (c *Communicator) isOutside(rank int, o CallOption) bool {
	return rank == -1 && o.torch && c.global != nil
}

// outside says of a rank that isOutside.
func (c *Communicator) outside() string {
	return "is not in the group of " + transport.RanksText(c.global)
}

// outsideError is an InvalidRootError with a text that has no rank of the group.
type outsideError struct {
	text    string
	invalid *InvalidRootError
}

func (e *outsideError) Error() string { return e.text }
func (e *outsideError) Unwrap() error { return e.invalid }

// Name returns the name of the group in errors, "" for the first group and if c is nil.
func (c *Communicator) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}
