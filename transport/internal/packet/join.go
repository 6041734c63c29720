package packet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// joinGroup makes this process's rank of a group, sends the others its description, and waits until
// they have joined.
//
// checkMembers returns an error if some of them will not. areHeldUp reports whether some of those
// that are missing when ctx is over wait for another rank, and will say for whom before long.
func (p *Process) joinGroup(
	ctx context.Context, id uint64, rank int, processOf []int, description string,
	checkMembers func(hasJoined func(rank int) bool) error, areHeldUp func(missing []int) bool,
) (*Endpoint, error) {
	if len(processOf) > maxRanks {
		return nil, &transport.NotAvailableError{Transport: p.name, Reason: fmt.Sprintf("a group has %d ranks, and at most %d can be connected", len(processOf), maxRanks)}
	}
	g := newGroup(p, id, rank, processOf)
	ep := g.newEndpoint()
	if p.closed.Load() {
		return nil, transport.ErrClosed
	}
	if !p.addGroup(g) {
		return nil, fmt.Errorf("rank %d has already joined the group: give each group another number", rank)
	}

	w := joinWait{begin: time.Now(), checkMembers: checkMembers, areHeldUp: areHeldUp}
	hasJoined := func(rank int) bool { return rank == g.rank || g.joinedAs[rank].Load() != nil }
	var err error
	if err = g.checkJoin(ctx, &w, hasJoined); err == nil {
		g.sendToAll(head{kind: kindJoined}, []byte(description))
		p.waitUntil(context.Background(), func() bool {
			if g.missingMembers(hasJoined) == nil {
				return true
			}

			err = g.checkJoin(ctx, &w, hasJoined)
			return err != nil
		})
	}

	if err == nil {
		return ep, nil
	}
	if g.failure() == nil && !errors.Is(err, transport.ErrClosed) { // who has joined sees this rank leave, and not why
		f := groupsync.JoinFailure(rank, err)
		g.failHere(f)
		g.sendToAll(head{kind: kindFailed, number: uint64(rank)}, encodeFailure(f))
	}
	return nil, errors.Join(err, ep.Close(), ep.Free())
}

// A joinWait is the wait for the other members of a group.
type joinWait struct {
	begin, end   time.Time // end: zero until its context is over
	checkMembers func(hasJoined func(rank int) bool) error
	areHeldUp    func(missing []int) bool
}

// isOver reports whether a wait is over whose context is. It is half as long again if members are
// held up.
func (w *joinWait) isOver(missing []int) bool {
	now := time.Now()
	if w.end.IsZero() {
		if w.end = now; w.areHeldUp(missing) {
			w.end = now.Add(now.Sub(w.begin) / 2)
		}
	}
	return !now.Before(w.end)
}

// checkJoin returns an error if the group will not be complete.
func (g *group) checkJoin(ctx context.Context, w *joinWait, hasJoined func(rank int) bool) error {
	if err := w.checkMembers(hasJoined); err != nil {
		return err
	}

	var late error
	switch err := transport.ContextError(ctx); {
	case errors.Is(err, context.DeadlineExceeded):
		if missing := g.missingMembers(hasJoined); w.isOver(missing) {
			late = &transport.TimeoutError{Missing: missing, By: g.rank, After: time.Since(w.begin).Round(time.Millisecond)}
		}
	case err != nil:
		return err
	}

	if err := g.process.wireError(); err != nil {
		return &transport.AbortedError{By: g.rank, Cause: err}
	}
	if f := g.failure(); f != nil { // of those that have waited for this rank in vain
		return groupsync.JoinError(f)
	}
	return late
}

// missingMembers returns the ranks that have not joined.
func (g *group) missingMembers(hasJoined func(rank int) bool) (ranks []int) {
	for rank := range g.processOf {
		if !hasJoined(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Group implements transport.Groups. It returns when all members have called it.
func (ep *Endpoint) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return ep.formGroup(ctx, ep.group.id, number, members)
}

// formGroup forms the group with a number among those of a parent. Ranks of one node are connected
// by their memory.
func (ep *Endpoint) formGroup(ctx context.Context, parent, number uint64, members []int) (transport.Endpoint, error) {
	rank, err := ep.RankIn(members)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ep.Name(), err)
	}
	processOf := make([]int, len(members))
	for i, m := range members {
		processOf[i] = ep.group.processOf[m]
	}
	n := ep.group.nodes
	if !n.acquire() {
		return nil, transport.ErrClosed
	}

	if places := n.placesHere(processOf); len(places) > 1 {
		made, err := ep.formOnNode(ctx, parent, number, members, places)
		return made, errors.Join(err, n.release())
	}
	caughtUp := false
	made, err := ep.group.process.joinGroup(ctx, groupID(parent, number, processOf), rank, processOf, "", func(hasJoined func(rank int) bool) error {
		err := ep.CheckMembers(members, hasJoined)
		if err != nil && !caughtUp { // a member may have come before it left
			caughtUp = true
			ep.group.rest.CatchUp()
			err = ep.CheckMembers(members, hasJoined)
		}
		return err
	}, func(missing []int) bool { return ep.AreWaiting(members, missing) })
	if err != nil {
		return nil, errors.Join(err, n.release())
	}
	made.group.nodes = n // its Close releases them
	return ep.group.process.wrap(made), nil
}

// groupID returns the id of a group, the same on all its members.
func groupID(parent, number uint64, processOf []int) uint64 {
	h := fnv.New64a()
	b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, parent), number)
	for _, rank := range processOf {
		b = binary.LittleEndian.AppendUint32(b, uint32(rank))
	}
	_, _ = h.Write(b) // never fails
	return max(h.Sum64(), 1)
}

// JoinWorld joins this process's ranks with all others of the job, for the attempt-th time.
func (p *Process) JoinWorld(ctx context.Context, attempt int) (transport.Endpoint, error) {
	processOf := make([]int, p.wire.Size())
	for rank := range processOf {
		processOf[rank] = rank
	}

	description := p.describe()
	ep, err := p.joinGroup(ctx, groupID(0, uint64(attempt), nil), p.wire.Rank(), processOf, description, func(hasJoined func(rank int) bool) error {
		for rank := range processOf {
			if pid, dead := p.deathOf(rank); dead && !hasJoined(rank) {
				return &transport.PeerLostError{Rank: rank, PID: pid}
			}
		}
		return nil
	}, func([]int) bool { return false })
	if err != nil {
		return nil, fmt.Errorf("%s: rank %d of %d, pid %d: %w", p.name, p.wire.Rank(), p.wire.Size(), os.Getpid(), err)
	}

	hosts := make([]host, len(processOf))
	for rank := range processOf {
		description := description
		if rank != ep.Rank() {
			description = *ep.group.joinedAs[rank].Load()
		}
		if hosts[rank], err = parseHost(description); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: rank %d said of its host %w", p.name, rank, err), ep.Close(), ep.Free())
		}
	}
	for rank, h := range hosts { // this process's is known only now
		p.deaths.watchRank(rank, h, hosts[ep.Rank()], p.awaiter == nil)
	}

	n := findNodes(p.name, hosts, ep.Rank())
	if len(n.here) > 1 {
		within, stop := ep.watchMembers(ctx, n.here)
		n.memory, err = p.connectNode(within, hosts[n.here[0]], slices.Index(n.here, ep.Rank()), len(n.here))
		stop()
		err = transport.Renumber(err, n.here)
	}

	if len(n.here) == 1 && os.Getenv("GOCCL_SHM_NAME") != "" { // for its records, which the launcher reads
		n.memory, _ = p.connectNode(ctx, hosts[ep.Rank()], 0, 1) // without it they are this process's
	}
	if err != nil {
		if f := ep.Fail(groupsync.JoinFailure(ep.Rank(), err)); f.By != ep.Rank() {
			err = groupsync.JoinError(f)
		}
		return nil, errors.Join(fmt.Errorf("%s: rank %d of %d, pid %d: the memory of its node: %w", p.name, p.wire.Rank(), p.wire.Size(), os.Getpid(), err),
			ep.Close(), ep.Free())
	}

	ep.group.nodes, ep.group.isWorld = n, true
	n.users.Add(1)
	p.setPollTime(hosts)
	return p.wrap(ep), nil
}
