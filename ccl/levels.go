package ccl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// levels are the groups by node of a group whose ranks can be on several nodes.
type levels struct {
	local         *Level // of SplitLocal
	nodes         int    // number of nodes if there are two levels, otherwise 1
	node, leaders *Level // leaders is nil unless there are two levels, and on ranks that lead no node

	overlapping bool             // the leaders' calls are made on another goroutine
	ending      interleave.Mutex // of the error of the kernel's call, which calls of both set
}

// localNumber is the number of the group of a node's ranks, which no call makes: calls count from 1
// (see groupNumber).
const localNumber = 0

// Nodes returns the number of nodes that the ranks of a group with two levels are on (see
// Call.Node), 1 for every other group, and -1 if c is nil.
func (c *Communicator) Nodes() int {
	if c == nil {
		return -1
	}
	return c.engine.levels.count()
}

// count returns the number of nodes if there are two levels, otherwise 1.
func (l *levels) count() int {
	if l == nil {
		return 1
	}
	return l.nodes
}

// splitByNode makes the groups by node, if the transport connects several nodes. All ranks call it.
// They end it by a call, so that it succeeds or fails on all.
func (c *Communicator) splitByNode(ctx context.Context) error {
	placed := c.engine.placedRanks()
	if placed == nil {
		return nil
	}
	err := c.formLevels(ctx, placed)
	if err == nil {
		c.engine.seq++
		last := transport.Arrival{Ctx: ctx, Seq: c.engine.seq}
		if limit := c.engine.selector.Timeout(); limit > 0 { // after those who wait for the culprit itself
			last.Limit = transport.Timeout{After: prolong(limit, 4), Warn: c.engine.warn}
		}
		if _, err = c.engine.ep.Enter(&last); err == nil {
			return nil
		}
		defer c.engine.ep.Withdraw()
	}
	f := c.engine.failures.failureOf(err, c.engine.rank, c.engine.seq)
	if passed, ok := errors.AsType[*transport.AbortedError](err); ok && passed.Cause != nil { // another rank gave up
		f.By, f.Text, f.Cause = passed.By, passed.Cause.Error(), passed.Cause
	}
	recorded, me := c.engine.ep.Fail(f), c.engine.rank
	if isText := recorded.Kind == f.Kind && recorded.Cause == nil; f.By == me && recorded.By == me && (recorded == f || isText) {
		return err // the rank's own, of which others may have got the text and told it first
	}
	return c.engine.failures.cause(recorded) // perhaps its own, before it began
}

func (c *Communicator) formLevels(ctx context.Context, placed transport.Nodes) error {
	nodes := placed.Nodes()
	onNode, first := ranksByNode(nodes, nodes[c.engine.rank])
	name := "of " + transport.RanksText(onNode) + ", which are on one node"
	if len(onNode) == 1 {
		name = "of " + transport.RanksText(onNode) + ", which is alone on its node"
	}

	local, err := c.subgroup(ctx, localNumber, onNode, name, c.engine.selector.Timeout(), c.levelSelector)
	if err != nil {
		return transport.Renumber(initializationCause(err), onNode)
	}
	c.engine.levels = &levels{local: c.newLevel(local, onNode), nodes: 1}
	limit := c.engine.selector.Timeout()
	if err := c.formLevel(ctx, limit, placed, &c.engine.levels.node, onNode, "a level of one node"); err != nil {
		return transport.Renumber(err, onNode)
	}
	if !twoLevels(nodes, first) {
		return nil
	}
	if c.engine.rank == onNode[0] { // other leaders may wait for ranks of their nodes, and name them first
		if err := c.formLevel(ctx, prolong(limit, 2), placed, &c.engine.levels.leaders, first, "the level of all nodes"); err != nil {
			return transport.Renumber(err, first)
		}
	}
	c.engine.levels.nodes = len(first)
	return nil
}

// ranksByNode returns the ranks of a node, and the first rank of each node.
func ranksByNode(nodes []int, node int) (ranks, first []int) {
	for rank, n := range nodes {
		if n == node {
			ranks = append(ranks, rank)
		}
		if n == len(first) {
			first = append(first, rank)
		}
	}
	return ranks, first
}

// twoLevels reports whether a group has two levels (see Call.Node).
func twoLevels(nodes, first []int) bool {
	return slices.IsSorted(nodes) && len(first) > 1 && len(first) < len(nodes)
}

// formLevel makes a level. Its failures are those of the whole group, which reports them.
func (c *Communicator) formLevel(ctx context.Context, limit time.Duration, placed transport.Nodes, level **Level, members []int, which string) error {
	name := fmt.Sprintf("of %s, %s", transport.RanksText(members), which)
	if c.engine.name != "" {
		name += " of the group " + c.engine.name
	}

	selector, err := c.levelSelector(len(members), "a group "+name)
	if err != nil {
		return err
	}

	within := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		within, cancel = interleave.WithTimeout(ctx, limit)
		defer cancel()
	}
	ep, err := placed.Level(within, members)
	if err != nil {
		return err
	}
	comm := unopened(ep)
	*level = c.newLevel(comm, members) // whether it opens or not, it is freed after this group
	comm.engine.level = *level
	const number = ^uint64(0) // that no call has

	err = comm.open(ctx, WithSelector(selector), c.partOf(name, number, members))
	if c.engine.meter.waits != nil {
		comm.engine.addWaitsTo(&comm.engine.meter.waited)
	}
	return err
}

// newLevel returns a group of members by node. It holds the group until free.
func (c *Communicator) newLevel(comm *Communicator, members []int) *Level {
	comm.engine.holds.life.Hold() // it is new, so this succeeds
	return &Level{kernel: &c.engine.call, engine: &comm.engine, comm: comm, ranks: members}
}

// close closes the groups by node. A call of the whole group may still use their memory.
func (l *levels) close() error { return l.each((*Communicator).Close) }

// free ends the hold of the groups by node.
func (l *levels) free() error {
	return l.each(func(c *Communicator) error { return c.engine.holds.drop() })
}

func (l *levels) each(do func(*Communicator) error) (err error) {
	if l == nil {
		return nil
	}
	for _, level := range []*Level{l.node, l.leaders, l.local} {
		if level != nil {
			err = errors.Join(err, do(level.comm))
		}
	}
	return err
}

// partial is the Selector of a group that is made of one on several nodes.
type partial struct {
	Selector
	level bool
}

// Choose chooses direct where the configuration names an algorithm that only the whole group can
// do, and on a level also where it names none that the level can do.
func (s partial) Choose(shape Shape, entry string) (Choice, error) {
	ch, err := s.Selector.Choose(shape, entry)
	if err == nil || entry != "" || !s.level && !errors.Is(err, errOneLevel) && !errors.Is(err, errNotNative) {
		return ch, err
	}
	return registered{s.Topology(), DefaultRegistry()}.Choose(shape, "")
}

func (s partial) ForGroup(ranks int, origin string) (Selector, error) {
	of, err := s.Selector.ForGroup(ranks, origin)
	if _, is := of.(partial); is || err != nil {
		return of, err
	}
	return partial{Selector: of}, nil
}

// ofConfigured is the Selector of a level for whose size the configuration has no algorithm.
type ofConfigured struct {
	Selector
	whole Selector
}

func (s ofConfigured) Timeout() time.Duration { return s.whole.Timeout() }
func (s ofConfigured) Debug() bool            { return s.whole.Debug() }

// levelSelector returns the Selector of a level. It is that of a group without WithSelector where
// the configuration has no algorithm for a group of that size.
func (c *Communicator) levelSelector(ranks int, origin string) (Selector, error) {
	s, err := c.engine.selector.ForGroup(ranks, origin)
	if err != nil {
		plain, none := newRegistered(ranks)
		if none != nil {
			return nil, err
		}
		s = ofConfigured{plain, c.engine.selector}
	}
	return partial{s, true}, nil
}

// Level is one of the two levels of a call: the group of the ranks on one node, or that of the
// first ranks of all nodes.
//
// Its methods are collectives of that group, with buffers of the call, of Scratch, or parts of
// them. All ranks of a level make the same calls of it in the same order. After an error, all verbs
// of the call return it. Reductions use the call's operation; an average is a sum until
// Call.Epilogue.
type Level struct {
	kernel *Call
	engine *engine
	comm   *Communicator // of the engine
	ranks  []int         // in the call's group
	opts   [1]CallOption

	lists lists // of a call: the lengths of blocks
}

// Node returns the level of the ranks on this rank's node. It is nil in a group without two levels,
// where no kernel runs that is TwoLevels.
//
// A group has two levels if its ranks are on several nodes, some node has several of them, and the
// ranks of each node follow each other, as launchers place them unless they are told otherwise.
func (c *Call) Node() *Level {
	if l := c.engine.levels; l == nil || l.nodes == 1 {
		return nil
	}
	return c.levelOf(c.engine.levels.node)
}

// Leaders returns the level of the leaders, which are the first ranks of all nodes. It is nil on
// other ranks.
func (c *Call) Leaders() *Level {
	if c.engine.levels == nil {
		return nil
	}
	return c.levelOf(c.engine.levels.leaders)
}

func (c *Call) levelOf(l *Level) *Level {
	if l != nil {
		l.opts[0] = CallOption{timeout: l.limit(), label: c.opts.label}
	}
	return l
}

// limit returns how long a call of the level may wait. The ranks of a node wait for their leader,
// who waits for other leaders, who wait for their nodes: who waits for the culprit itself gives up
// first, so that the error names it.
func (l *Level) limit() time.Duration {
	c := l.kernel.engine
	limit := l.kernel.opts.timeout
	if limit == 0 {
		limit = c.selector.Timeout()
	}

	switch {
	case limit <= 0:
		return -1
	case l == c.levels.leaders:
		return prolong(limit, 1)
	case c.levels.leaders == nil:
		return prolong(limit, 2)
	}
	return limit
}

// prolong returns a limit by which a rank gives up later than those whose limit has fewer steps.
func prolong(limit time.Duration, steps int) time.Duration {
	if limit <= 0 {
		return limit
	}
	return limit + time.Duration(steps)*max(limit/2, leastStep)
}

// leastStep is how long a rank between nodes takes to give up, and to pass that on, however short
// its timeout is.
const leastStep = 500 * time.Millisecond

// Overlap runs onLeaders and onNode at the same time, on a leader, and returns when both have
// returned. It returns the first error of a call of a level, and otherwise those of both.
//
// onLeaders runs on another goroutine. Of the call it uses Leaders alone, and onNode Node alone.
// Neither calls Overlap, and the two touch no common memory.
//
// If onLeaders panics, that is the error of the call; if it ends its goroutine by runtime.Goexit,
// so does Overlap.
func (c *Call) Overlap(onLeaders, onNode func() error) error {
	levels := c.engine.levels
	var beside interleave.WaitGroup
	end := func() {
		began := c.engine.meter.waits.now()
		beside.Wait()
		c.engine.meter.waits.end(began)
		levels.overlapping = false
	}
	defer end() // also after a panic

	var leading error
	hasEnded := false // not by runtime.Goexit
	levels.overlapping = true
	beside.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				hasEnded = true
				leading = levels.fail(c, &KernelPanicError{Kernel: c.name(), Value: v, Stack: debug.Stack()})
			}
		}()
		leading = onLeaders()
		hasEnded = true
	})

	err := onNode()
	end()
	switch {
	case !hasEnded:
		runtime.Goexit()
	case c.err != nil:
		return c.err
	}
	return errors.Join(err, leading)
}

// errorOf returns the error of a kernel's call, nil if it has none.
func (l *levels) errorOf(c *Call) error {
	l.ending.Lock()
	defer l.ending.Unlock()
	return c.err
}

// fail makes err the error of a kernel's call, unless that has one. It returns the one that is.
func (l *levels) fail(c *Call, err error) error {
	l.ending.Lock()
	defer l.ending.Unlock()
	if c.err == nil {
		_ = c.fail(err)
	}
	return c.err
}

// Rank returns this rank's number in the level.
func (l *Level) Rank() int { return l.engine.rank }

// Ranks returns the ranks of the level by their numbers in the call, in ascending order. The caller
// does not change the slice.
func (l *Level) Ranks() []int { return l.ranks }

// op returns the operation of the level's reductions.
func (l *Level) op() Op {
	if op := l.kernel.plan.shape.Op; op != Avg {
		return op
	}
	return Sum
}

// AllReduce reduces send of all ranks of the level to recv, which is send or disjoint from it.
func (l *Level) AllReduce(send, recv Buffer) error {
	return l.call(&arguments{coll: CollAllReduce, op: l.op(), send: send, recv: recv}, nil)
}

// Reduce reduces send of all ranks of the level to recv on its rank root. There recv is send or
// disjoint from it; on other ranks it is empty.
func (l *Level) Reduce(send, recv Buffer, root int) error {
	if l.engine.rank != root {
		recv = recv.Slice(0, 0)
	}
	return l.call(&arguments{coll: CollReduce, op: l.op(), root: root, send: send, recv: recv}, nil)
}

// Broadcast gives all ranks of the level the contents of buf of its rank root.
func (l *Level) Broadcast(buf Buffer, root int) error {
	return l.call(&arguments{coll: CollBroadcast, root: root, recv: buf}, nil)
}

// AllGather gives each rank of the level the blocks of all. They lie packed in whole, in rank
// order; this rank's own block is in its place before the call. On a node a block is that of one
// rank in the call; among leaders it is the blocks of a node's ranks.
func (l *Level) AllGather(whole Buffer) error {
	return l.call(&arguments{coll: CollAllGather, send: l.block(whole), recv: whole}, l.blocks())
}

// ReduceScatter reduces whole of all ranks of the level, and gives each its block of the result.
// The blocks are laid out as in AllGather, and this rank's replaces its input there.
func (l *Level) ReduceScatter(whole Buffer) error {
	return l.call(&arguments{coll: CollReduceScatter, op: l.op(), send: whole, recv: l.block(whole)}, l.blocks())
}

// blocks returns the lengths of the blocks of the level's ranks.
func (l *Level) blocks() *lists {
	if l.lists.counts == nil {
		l.lists.counts = make([]int, len(l.ranks))
	}

	for i, rank := range l.ranks {
		end := rank + 1
		if l == l.kernel.engine.levels.leaders {
			end = l.kernel.Size()
			if i+1 < len(l.ranks) {
				end = l.ranks[i+1]
			}
		}

		l.lists.counts[i] = 0
		for ; rank < end; rank++ {
			l.lists.counts[i] += l.kernel.BlockLen(rank)
		}
	}
	return &l.lists
}

// block returns this rank's block.
func (l *Level) block(whole Buffer) Buffer {
	at := 0
	counts := l.blocks().counts
	for _, n := range counts[:l.engine.rank] {
		at += n
	}
	return whole.Slice(at, at+counts[l.engine.rank])
}

// call makes a call of the level.
func (l *Level) call(a *arguments, blocks *lists) error {
	c := l.kernel
	a.dtype = c.plan.shape.DType
	err := l.engine.run(c.engine.entry.Ctx, a, blocks, l.opts[:])
	l.countWaits()

	if err == nil {
		return c.engine.levels.errorOf(c)
	}
	f, what := l.engine.ep.Failure(), a.coll.String()+" of "+l.engine.name
	if f == nil { // it was closed, or the kernel's buffers are wrong
		return c.engine.levels.fail(c, fmt.Errorf("%s: %w", what, err))
	}
	return c.engine.levels.fail(c, &levelError{what, err, l.outward(f), &c.engine.group})
}

// countWaits adds how long a call of the level has waited to the waits of the kernel's call. Beside
// calls of the node, that is how long the kernel waits for it.
func (l *Level) countWaits() {
	of := l.kernel.engine
	if of.meter.waits != nil && !(of.levels.overlapping && l == of.levels.leaders) {
		of.meter.waits.add(l.engine.meter.waited.total)
	}
	l.engine.meter.waited.total = 0
}

// outward returns a failure of the level as one of the call's group.
func (l *Level) outward(f *transport.Failure) *transport.Failure {
	out := *f
	out.Seq = l.kernel.engine.seq
	out.By = l.rankOf(f.By)
	out.Ranks, out.Missing = l.ranksOf(f.Ranks), l.ranksOf(f.Missing)
	switch f.Kind {
	case transport.FailureTimeout, transport.FailureStuck:
		if late := l.culprits(out.Ranks); l.kernel.engine.stage.inside || !slices.Equal(late, out.Ranks) {
			out.Kind, out.Ranks = transport.FailureStuck, late // all ranks have made the kernel's call
		}
	case transport.FailureMismatch, transport.FailureOverlap, transport.FailureRejected:
		// The kernel's calls of the level do not match.
		out.Kind, out.Ranks, out.Missing = transport.FailureAborted, nil, nil
		out.Cause = l.engine.failures.cause(f)
		out.Text = out.Cause.Error()
	}
	if out.Kind != transport.FailureAborted {
		out.Text = l.kernel.engine.failures.cause(&out).Error() // ranks have other numbers in the level
	}
	return &out
}

// culprits returns those for whom ranks wait that did not come in time in the level: they may wait
// in the whole group, for others to enter the call.
func (l *Level) culprits(ranks []int) (late []int) {
	placed := l.kernel.engine.placedRanks()
	if l.kernel.engine.ep.Failed() {
		return ranks
	}
	for _, rank := range ranks {
		late = append(late, placed.Culprit(rank))
	}
	slices.Sort(late)
	return slices.Compact(late)
}

// rankOf returns the number in the call's group of a rank of the level. The number comes from
// another process.
func (l *Level) rankOf(rank int) int {
	if rank < 0 || rank >= len(l.ranks) {
		return l.kernel.engine.rank
	}
	return l.ranks[rank]
}

func (l *Level) ranksOf(ranks []int) (all []int) {
	for _, rank := range ranks {
		all = append(all, l.rankOf(rank))
	}
	return all
}

// levelError is the error of a call of a level.
type levelError struct {
	what    string
	err     error
	failure *transport.Failure // of the whole group
	whole   *group
}

func (e *levelError) Error() string { return e.what + ": " + e.err.Error() }
func (e *levelError) Unwrap() error { return e.err }
