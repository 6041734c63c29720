package transporttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// runGroupThatForms is harness.runGroup for transports whose ranks can form further groups.
func (h *harness) runGroupThatForms(play func(g *group)) {
	h.runGroup(func(g *group) {
		if hasGroups(g.ranks[0].Endpoint) {
			play(g)
		}
	})
}

func (r *rank) formGroup(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return r.Endpoint.(transport.Groups).Group(ctx, number, slices.Clone(members))
}

// formGroups makes ranks form groups, all at the same time, while they make calls. numbers[i] is
// the number of the group of members[i].
func (g *group) formGroups(numbers []uint64, members [][]int) []*group {
	groups := make([]*group, len(members))
	for i, ranks := range members {
		groups[i] = newGroup(len(ranks), g.patience)
	}

	g.run(func(r *rank) {
		var all interleave.WaitGroup
		errs := make([]error, len(members))
		for i, ranks := range members {
			me := slices.Index(ranks, r.number)
			if me < 0 {
				continue
			}
			all.Go(func() {
				ep, err := r.formGroup(context.Background(), numbers[i], ranks)
				// Groups of ranks of one node are of another transport.
				_, hasNodes := r.Endpoint.(transport.Nodes)
				if err == nil && (ep.Rank() != me || ep.Size() != len(ranks) || ep.Name() != r.Name() && !hasNodes) {
					err = fmt.Errorf("group %d of ranks %v: the endpoint of rank %d returns rank %d of %d, of %q",
						numbers[i], ranks, r.number, ep.Rank(), ep.Size(), ep.Name())
				}
				groups[i].ranks[me] = &rank{Endpoint: ep, group: groups[i], number: me, size: len(ranks), rnd: r.rnd, ctx: r.ctx}
				errs[i] = err
			})
		}

		err := catchFailure(func() {
			for range 5 {
				r.exchangePayloads()
			}
		})
		all.Wait()
		failIf(cmp.Or(append(errs, err)...))
	})
	return groups
}

// closeAll closes and frees the endpoints of groups.
func closeAll(groups ...*group) {
	for _, g := range groups {
		g.closeRanks()
		g.freeAll()
	}
}

// makeEveryCall makes calls of all kinds, and sends messages beside them.
func (r *rank) makeEveryCall() {
	for i := range 3 {
		r.exchangePayloads()
		failIf(r.makeViewCall(300*i, i == 0, i == 1))
		failIf(r.exchangeAll(func(from int) int { return 70 + from }))
		if r.size > 1 {
			r.sendAround([]int{i, 40}, i == 1)
		}
	}
}

// exchangePayloads makes a call with payloads that fit a line, if the transport carries payloads.
func (r *rank) exchangePayloads() {
	r.makePayloadCall(func(q int) int { return min(5*q, transport.InlineBytes, r.PayloadLimit()) })
}

func numbersBelow(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func groupMembers(h *harness, n int) {
	h.runGroupThatForms(func(g *group) {
		all := numbersBelow(n)
		slices.Reverse(all)
		// All, backwards; two halves, which may have one number; one that overlaps both; one
		// of one rank.
		members := [][]int{all, all[:(n+1)/2], all[(n+1)/2:], {all[0], all[n-1]}, {n / 2}}
		numbers := []uint64{1, 2, 2, 3, 1 << 63}
		if n == 1 {
			members, numbers = members[:2], numbers[:2]
		}
		groups := g.formGroups(numbers, members)
		for i, g := range groups {
			failIfIn(catchFailure(func() { g.run((*rank).makeEveryCall) }), "group of ranks %v", members[i])
		}
		// A group of a group, which outlives that.
		inner := groups[0].formGroups([]uint64{1}, [][]int{[]int{0, n - 1}[:min(n, 2)]})
		closeAll(groups...)
		failIfIn(catchFailure(func() { inner[0].run((*rank).makeEveryCall) }), "group of a group that has ended")
		closeAll(inner...)
		g.run((*rank).makeEveryCall)
	})
}

func groupsApart(h *harness, n int) {
	for trial := range 4 {
		ev, outer := []*event{failure, departure}[trial%2], trial/2 == 0
		h.runGroupThatForms(func(g *group) {
			groups := g.formGroups([]uint64{5}, [][]int{numbersBelow(n)})
			ends, lives := groups[0], g
			if outer {
				ends, lives = lives, ends
			}

			ends.run(func(r *rank) { ev.happen(r, nil) })
			failIfIn(catchFailure(func() { lives.run((*rank).makeEveryCall) }), "after a %s of the outer (%v) group, the other", ev.name, outer)
			closeAll(groups...)
		})
	}
}

func groupRefused(h *harness, n int) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	h.runGroupThatForms(func(g *group) {
		g.run(func(r *rank) {
			for _, members := range [][]int{nil, {r.number, n}, {-1, r.number}, {r.number, r.number}, {(r.number + 1) % n}} {
				if _, err := r.formGroup(context.Background(), 9, members); err == nil {
					fail("rank %d of %d: Group accepts %v as members", r.number, n, members)
				}
			}

			_, err := r.formGroup(cancelled, 9, numbersBelow(n))
			expectError(err, context.Canceled)
			r.exchangePayloads()
		})

		g.run(func(r *rank) {
			want := transport.ErrFailed
			if r.number == 0 {
				want = transport.ErrClosed
				r.Close()
			} else {
				r.Fail(failureBy(r.number, 0))
			}
			_, err := r.formGroup(context.Background(), 10, []int{r.number})
			expectError(err, want)
		})
	})
}

// groupsGivenUp lets rank 0 give up the groups of a call, one with each other rank, before the
// others come.
func groupsGivenUp(h *harness, n int) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	h.runGroupThatForms(func(g *group) {
		gone := newGate(1)
		number := func(peer int) uint64 { return 3 | uint64(peer)<<transport.GroupCallBits }
		g.run(func(r *rank) {
			if r.number == 0 {
				for peer := 1; peer < n; peer++ {
					_, err := r.formGroup(cancelled, number(peer), []int{peer, 0})
					expectError(err, context.Canceled)
				}

				gone.pass()
				return
			}
			r.awaitGate(gone)
			ep, err := r.formGroup(context.Background(), number(r.number), []int{r.number, 0})
			if err == nil { // it does not wait for the others
				inner := &rank{Endpoint: ep, group: g, number: 0, size: 2, rnd: r.rnd, ctx: r.ctx}
				e := inner.nextArrival()
				_, err = inner.Enter(e)
				expectError(inner.giveUp(e, err), transport.ErrFailed)
				err = &transport.AbortedError{By: ep.Failure().By}
				failIf(errors.Join(ep.Close(), ep.Free()))
			}
			if aborted := errorAs[*transport.AbortedError](err); aborted.By != 1 {
				fail("the error of a group of ranks 0 and %d blames rank %d of it: %w", r.number, aborted.By, err)
			}
		})
	})
}

// noSpin lets ranks wait without spinning in turns, and all or none of them.
func noSpin(h *harness, n int) {
	h.run(func(r *rank) {
		for i := range 15 {
			r.noSpin = mix(uint64(i*n+r.number))%3 > 0
			r.pause()
			failIfIn(catchFailure(r.makeEveryCall), "NoSpin %v", r.noSpin)
		}
	})
}
