package ccl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// Split divides the ranks into groups: the ranks that bring the same color, 0 or more, form one.
// They are ordered by their keys, and by their ranks where keys are equal. A rank with a negative
// color is in no group and gets nil.
//
// A new group has its own calls and its own failure: calls on different groups may run at the same
// time, and closing one does not affect the others. A group of all ranks in their order has the
// configuration and the topology of this group (MPI_Comm_dup). Others have the configuration, but
// their topology is a ring, and entries with a world size of their own are left out unless it is
// the new group's. If the configured algorithm cannot serve the new group (a grid, or such an
// entry), the rules choose, or, without rules, the first entry that can; LastChoice reports it.
//
// A label (WithLabel) is part of the group's name in errors, logs and the flight recorder, also of
// groups that NewGroup and Form make.
//
// Split is collective. It fails with *CollectiveFailedError, also if this group fails, by any of
// its ranks, while members of the new one meet; or, if only the new group could not
// be set up, with *transport.InitializationFailedError, which names the new group and its ranks.
func (c *Communicator) Split(ctx context.Context, color, key int, opts ...CallOption) (*Communicator, error) {
	const coll = collSplit
	if err := c.start(ctx, coll, opts); err != nil {
		return nil, err
	}

	c.engine.scratch.lengths.local = append(c.engine.scratch.lengths.local[:0], int64(color), int64(key))
	err := c.engine.exchangeLengths(ctx, &arguments{coll: coll}, opts)
	number := c.engine.seq
	var members []int
	for r := 0; err == nil && r < c.engine.size; r++ {
		if color >= 0 && c.engine.scratch.lengths.all[2*r] == int64(color) {
			members = append(members, r)
		}
	}

	slices.SortStableFunc(members, func(r, s int) int {
		return cmp.Compare(c.engine.scratch.lengths.all[2*r+1], c.engine.scratch.lengths.all[2*s+1])
	})
	if err = c.engine.end(err); err != nil || members == nil {
		return nil, err
	}
	made, err := c.group(ctx, coll, number, members, 0, opts)
	if err != nil {
		return nil, c.engine.formingError(coll, number, members, opts, err)
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
// this rank is not in are nil.
//
// A list gives the order of the ranks in its group. Lists may have ranks in common, or be equal.
// All ranks of this group call Form, with the same lists. The groups are made one after another, in
// the same order on all ranks, and are like those of Split. One whose members may still wait in
// earlier ones gives up after these: for each of up to four that follow each other, it waits half
// as long again.
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
	if err := c.engine.checkLists(coll, lists); err != nil {
		return nil, c.engine.end(c.engine.rejectCall(&arguments{coll: coll}, opts, err))
	}

	r := c.engine.ask(coll, 0, Buffer{}, Buffer{}, opts)
	r.counts = flatten(lists)
	r.lengths = fingerprint.HashCounts(r.counts)
	err := c.engine.step(ctx, r)
	number := c.engine.seq
	if err = c.engine.end(err); err != nil {
		return nil, err
	}
	// Members of a group wait until this rank comes, or gives up with a reason.
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	made := make([]*Communicator, len(lists))
	var unmade []int // the members of the first group that could not be made
	depths := depthsOf(lists, c.engine.size)
	for i, members := range lists {
		if !slices.Contains(members, c.engine.rank) {
			continue
		}
		group, failed := c.group(ctx, coll, groupNumber(number, i), members, depths[i], opts)
		if made[i] = group; failed != nil && err == nil {
			err, unmade = failed, members
			interleave.Step()
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
	return nil, c.engine.formingError(coll, number, unmade, opts, err)
}

// depthsOf returns, by list, how many groups before it members may have to wait for, one after the
// other, before they come. More than four count as four.
func depthsOf(lists [][]int, ranks int) []int {
	depths, next := make([]int, len(lists)), make([]int, ranks)
	for i, members := range lists {
		for _, r := range members {
			depths[i] = max(depths[i], next[r])
		}
		for _, r := range members {
			next[r] = min(depths[i]+1, 4)
		}
	}
	return depths
}

// formingError returns err, which keeps this rank out of a group that call number seq makes of
// members, as the error of that call: the failure of this group, if that has failed meanwhile.
func (e *engine) formingError(coll Collective, seq uint64, members []int, opts []CallOption, err error) error {
	if isOwnEnd(err, slices.Index(members, e.rank)) { // another rank may have failed this group because of it
		return outsideCall(coll, opts, err)
	}
	return e.errorSince(coll, seq, "making the group", opts, err)
}

// isOwnEnd reports whether rank itself, and no other one, has ended the group that err is about.
func isOwnEnd(err error, rank int) bool {
	if aborted, ok := errors.AsType[*transport.AbortedError](err); ok {
		return aborted.By == rank
	}
	_, isLost := errors.AsType[*transport.PeerLostError](err)
	_, isLate := errors.AsType[*transport.TimeoutError](err)
	isOfOther := isLost || isLate || errors.Is(err, transport.ErrFailed) || errors.Is(err, context.DeadlineExceeded)
	return !isOfOther || errors.Is(err, context.Canceled) // its cause may be of another group
}

// errorSince returns err as the error of call number seq, which has left the engine: the failure of
// the group, if that has failed meanwhile, with the message.
func (e *engine) errorSince(coll Collective, seq uint64, message string, opts []CallOption, err error) error {
	if !e.holds.life.Hold() {
		return outsideCall(coll, opts, err)
	}
	defer e.holds.drop() //nolint:errcheck // Close has returned already
	f := e.ep.Failure()
	if f == nil {
		return outsideCall(coll, opts, err)
	}
	o := mergeCallOptions(opts)
	failed := e.failures.failureError(coll, f, message)
	failed.Seq = e.number(seq)
	made := newCallError(coll.String(), &o, failed)
	made.Seq = failed.Seq
	return e.failures.notify(made)
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
// groupNumber. It gives up after those that wait in groups with a smaller depth.
func (c *Communicator) group(ctx context.Context, coll Collective, number uint64, members []int, depth int, opts []CallOption) (*Communicator, error) {
	name := fmt.Sprintf("of %s, made by %v, call %d", transport.RanksText(members), coll, c.engine.number(number&(1<<transport.GroupCallBits-1)))
	if label := mergeCallOptions(opts).label; label != "" {
		name = strconv.Quote(label) + " " + name
	}
	limit := prolong(c.engine.selector.Timeout(), depth)
	if c.engine.placedRanks() == nil {
		return c.subgroup(ctx, number, members, name, limit, c.engine.selector.ForGroup)
	}
	return c.subgroup(ctx, number, members, name, limit, partial{Selector: c.engine.selector}.ForGroup)
}

// subgroup is group with a name, to which the name of this group is added, and with a function that
// returns the Selector unless that is this group's.
func (c *Communicator) subgroup(
	ctx context.Context, number uint64, members []int, name string, limit time.Duration, selectorFor func(ranks int, origin string) (Selector, error),
) (*Communicator, error) {
	if c.engine.name != "" {
		name += " of the group " + c.engine.name
	}
	failed := func(err error) error {
		return initializationFailed(c.engine.ep.Name(), name, c.globalRanks(members), err)
	}
	if !c.engine.holds.life.HoldOpen() {
		return nil, failed(ErrClosed)
	}
	defer c.engine.holds.drop() //nolint:errcheck // Close has returned already
	selector := c.engine.selector
	if !inOrder(members, c.engine.size) {
		var err error
		if selector, err = selectorFor(len(members), "a group "+name); err != nil {
			return nil, failed(err)
		}
	}

	within := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		within, cancel = interleave.WithTimeout(ctx, limit)
		defer cancel()
	}
	ep, err := c.engine.connect(within, number, members)
	if err != nil {
		return nil, failed(err)
	}

	part := c.partOf(name, number, members)
	part.limit = limit
	return New(ctx, ep, WithSelector(selector), WithLogger(c.engine.journal.logger), WithFailures(c.options.failures), part)
}

// partOf returns the option of a group of some ranks of this one, which uses its recorder.
func (c *Communicator) partOf(name string, number uint64, members []int) Option {
	o := Option{name: name, global: c.globalRanks(members), observer: c.options.observer}
	if r := c.engine.records.recorder; len(members) > 1 || r != nil && r.metrics {
		id := fnv.New64a() // not of the name, in which ranks may have different labels
		fmt.Fprint(id, c.engine.records.lane.Group(), number, o.global)
		r.users.Add(1) // while this communicator still uses it
		o.recorder, o.id = r, id.Sum64()
	}
	return o
}

// globalRanks returns the ranks of members of this group in the first group.
func (c *Communicator) globalRanks(members []int) (global []int) {
	for _, r := range members {
		global = append(global, c.engine.globalRank(r))
	}
	return global
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

// GlobalRank maps a rank of this group, 0 <= rank < Size, to its rank in the first group, from
// which this group was made. In the first group the two are the same. If c is nil, it returns -1.
func (c *Communicator) GlobalRank(rank int) int {
	if c == nil {
		return -1
	}
	return c.engine.globalRank(rank)
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
	return c.engine.name
}
