package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/goccl/goccl/transport"
)

// withGroups is harness.world for transports whose ranks can form further groups.
func (h *harness) withGroups(n int, seed uint64, play func(w *world)) {
	h.world(n, seed, "", func(w *world) {
		if hasGroups(w.ranks[0].Endpoint) {
			play(w)
		}
	})
}

// form calls Group for this rank.
func (r *rank) form(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return r.Endpoint.(transport.Groups).Group(ctx, number, slices.Clone(members))
}

// form makes ranks form groups, all at the same time, while they make calls. numbers[i] is
// the number of the group of members[i].
func (w *world) form(numbers []uint64, members [][]int) []*world {
	groups := make([]*world, len(members))
	for i, ranks := range members {
		groups[i] = newWorld(len(ranks), w.patience)
	}
	w.each(func(r *rank) {
		var all sync.WaitGroup
		errs := make([]error, len(members))
		for i, ranks := range members {
			me := slices.Index(ranks, r.me)
			if me < 0 {
				continue
			}
			all.Go(func() {
				ep, err := r.form(context.Background(), numbers[i], ranks)
				_, nodes := r.Endpoint.(transport.Nodes) // whose groups on one node are of another transport
				if err == nil && (ep.Rank() != me || ep.Size() != len(ranks) || ep.Name() != r.Name() && !nodes) {
					err = fmt.Errorf("group %d of ranks %v: the endpoint of rank %d returns rank %d of %d, of %q",
						numbers[i], ranks, r.me, ep.Rank(), ep.Size(), ep.Name())
				}
				groups[i].ranks[me] = &rank{Endpoint: ep, w: groups[i], me: me, n: len(ranks), rnd: r.rnd, ctx: r.ctx}
				errs[i] = err
			})
		}
		err := protected(func() {
			for range 5 {
				r.greet()
			}
		})
		all.Wait()
		for _, err := range append(errs, err) {
			must(err)
		}
	})
	return groups
}

// leaveAll closes and frees the endpoints of groups.
func leaveAll(groups ...*world) {
	for _, g := range groups {
		g.each(func(r *rank) { mustIn(r.Close(), "Close") })
		g.free()
	}
}

// work makes calls of all kinds, and sends messages beside them.
func (r *rank) work() {
	for i := range 3 {
		r.greet()
		must(r.view(300*i, i == 0, i == 1))
		must(r.allPairs(func(from int) int { return 70 + from }))
		if r.n > 1 {
			r.ring([]int{i, 40}, i == 1)
		}
	}
}

// greet makes a call with payloads that fit a line, if the transport carries payloads.
func (r *rank) greet() {
	r.payload(func(q int) int { return min(5*q, transport.InlineBytes, r.PayloadLimit()) })
}

// upTo returns the numbers below n.
func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func groupMembers(h *harness, n int) {
	h.withGroups(n, 0, func(w *world) {
		all := upTo(n)
		slices.Reverse(all)
		// All, backwards; two halves, which may have one number; one that overlaps both; one
		// of one rank.
		members := [][]int{all, all[:(n+1)/2], all[(n+1)/2:], {all[0], all[n-1]}, {n / 2}}
		numbers := []uint64{1, 2, 2, 3, 1 << 63}
		if n == 1 {
			members, numbers = members[:2], numbers[:2]
		}
		groups := w.form(numbers, members)
		for i, g := range groups {
			mustIn(protected(func() { g.each((*rank).work) }), "group of ranks %v", members[i])
		}
		// A group of a group, which outlives that.
		inner := groups[0].form([]uint64{1}, [][]int{[]int{0, n - 1}[:min(n, 2)]})
		leaveAll(groups...)
		mustIn(protected(func() { inner[0].each((*rank).work) }), "group of a group that has ended")
		leaveAll(inner...)
		w.each((*rank).work)
	})
}

func groupsApart(h *harness, n int) {
	for trial := range 4 {
		ev, outer := []*event{failure, departure}[trial%2], trial/2 == 0
		h.withGroups(n, uint64(trial), func(w *world) {
			groups := w.form([]uint64{5}, [][]int{upTo(n)})
			ends, lives := groups[0], w
			if outer {
				ends, lives = lives, ends
			}
			ends.each(func(r *rank) { ev.happen(r, nil) })
			mustIn(protected(func() { lives.each((*rank).work) }), "after a %s of the outer (%v) group, the other", ev.name, outer)
			leaveAll(groups...)
		})
	}
}

func groupRefused(h *harness, n int) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	h.withGroups(n, 0, func(w *world) {
		w.each(func(r *rank) {
			for _, members := range [][]int{nil, {r.me, n}, {-1, r.me}, {r.me, r.me}, {(r.me + 1) % n}} {
				if _, err := r.form(context.Background(), 9, members); err == nil {
					fail("rank %d of %d: Group accepts %v as members", r.me, n, members)
				}
			}
			_, err := r.form(cancelled, 9, upTo(n))
			expect(err, context.Canceled)
			r.greet()
		})
		w.each(func(r *rank) {
			want := transport.ErrFailed
			if r.me == 0 {
				want = transport.ErrClosed
				r.Close()
			} else {
				r.Fail(failureBy(r.me, 0))
			}
			_, err := r.form(context.Background(), 10, []int{r.me})
			expect(err, want)
		})
	})
}

// groupsGivenUp lets rank 0 give up the groups of a call, one with each other rank, before the others come.
func groupsGivenUp(h *harness, n int) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	h.withGroups(n, 0, func(w *world) {
		gone := newGate(1)
		number := func(peer int) uint64 { return 3 | uint64(peer)<<transport.GroupCallBits }
		w.each(func(r *rank) {
			if r.me == 0 {
				for peer := 1; peer < n; peer++ {
					_, err := r.form(cancelled, number(peer), []int{peer, 0})
					expect(err, context.Canceled)
				}
				gone.pass()
				return
			}
			r.await(gone)
			ep, err := r.form(context.Background(), number(r.me), []int{r.me, 0})
			if err == nil { // it does not wait for the others
				inner := &rank{Endpoint: ep, w: w, me: 0, n: 2, rnd: r.rnd, ctx: r.ctx}
				e := inner.arrival()
				_, err = inner.Enter(e)
				expect(inner.leave(e, err), transport.ErrFailed)
				err = &transport.AbortedError{By: ep.Failure().By}
				must(errors.Join(ep.Close(), ep.Free()))
			}
			if aborted := as[*transport.AbortedError](err); aborted.By != 1 {
				fail("the error of a group of ranks 0 and %d blames rank %d of it: %w", r.me, aborted.By, err)
			}
		})
	})
}

// noSpin lets ranks wait without spinning in turns, and all or none of them.
func noSpin(h *harness, n int) {
	h.each(n, 0, "", func(r *rank) {
		for i := range 15 {
			r.noSpin = mix(uint64(i*n+r.me))%3 > 0
			r.pause()
			mustIn(protected(r.work), "NoSpin %v", r.noSpin)
		}
	})
}
