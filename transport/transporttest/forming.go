package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/goccl/goccl/transport"
)

// formable reports whether the ranks of a transport can form further groups.
func (w *world) formable(h *harness) bool {
	_, ok := w.ranks[0].Endpoint.(transport.Groups)
	if !ok {
		h.logf("%s is no transport.Groups: nothing to check", w.ranks[0].Name())
	}
	return ok
}

// form calls Group for this rank.
func (r *rank) form(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return r.Endpoint.(transport.Groups).Group(ctx, number, slices.Clone(members))
}

// form makes ranks form groups, all at the same time, while they make calls. The i-th has
// the number numbers[i].
func (w *world) form(numbers []uint64, members [][]int) ([]*world, error) {
	groups := make([]*world, len(members))
	for i, ranks := range members {
		groups[i] = &world{patience: w.patience, stop: make(chan struct{}), ranks: make([]*rank, len(ranks))}
	}
	err := w.each(func(r *rank) error {
		var all sync.WaitGroup
		errs := make([]error, len(members))
		for i, ranks := range members {
			me := slices.Index(ranks, r.me)
			if me < 0 {
				continue
			}
			all.Go(func() {
				var ep transport.Endpoint
				ep, errs[i] = r.form(context.Background(), numbers[i], ranks)
				if errs[i] == nil && (ep.Rank() != me || ep.Size() != len(ranks) || ep.Name() != r.Name()) {
					errs[i] = fmt.Errorf("group %d of ranks %v: the endpoint of rank %d says that it is rank %d of %d, of %q",
						numbers[i], ranks, r.me, ep.Rank(), ep.Size(), ep.Name())
				}
				groups[i].ranks[me] = &rank{Endpoint: ep, w: groups[i], me: me, n: len(ranks), rnd: r.rnd, ctx: r.ctx}
			})
		}
		var err error
		for i := 0; i < 5 && err == nil; i++ {
			err = r.greet()
		}
		all.Wait()
		return errors.Join(err, errors.Join(errs...))
	})
	return groups, err
}

// leaveAll closes the endpoints of groups, and gives back what they hold.
func leaveAll(groups ...*world) error {
	for _, g := range groups {
		if err := g.each(func(r *rank) error { return r.Close() }); err != nil {
			return err
		}
		for _, r := range g.ranks {
			if err := r.Free(); err != nil {
				return err
			}
		}
	}
	return nil
}

// work makes calls of all kinds, and sends a message outside of them.
func (r *rank) work() error {
	next, previous := (r.me+1)%r.n, (r.me+r.n-1)%r.n
	for i := range 3 {
		if err := errors.Join(r.greet(), r.window(100*i, i == 0, i == 1)); err != nil {
			return err
		}
		if r.n == 1 {
			continue
		}
		err := r.conversation(func(seq uint64) error {
			if err := r.exchange(next, letter(seq, r.me, next, 70, i), previous, letter(seq, previous, r.me, 70, i)); err != nil {
				return err
			}
			return r.Drain(next)
		})
		if err != nil {
			return err
		}
		out, in := &mail{next, letters(r.me, next, []int{i, 40})}, &mail{previous, letters(previous, r.me, []int{i, 40})}
		if err := r.deliver([]*mail{out}, []*mail{in}, i == 1); err != nil {
			return err
		}
	}
	return nil
}

func groupMembers(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		if !w.formable(h) {
			return nil
		}
		all := make([]int, n)
		for i := range all {
			all[i] = n - 1 - i
		}
		// All, backwards; two halves, which may have one number; one that overlaps both; one
		// of one rank.
		members := [][]int{all, all[:(n+1)/2], all[(n+1)/2:], {all[0], all[n-1]}, {n / 2}}
		numbers := []uint64{1, 2, 2, 3, 1 << 63}
		if n == 1 {
			members, numbers = members[:2], numbers[:2]
		}
		groups, err := w.form(numbers, members)
		if err != nil {
			return err
		}
		for i, g := range groups {
			if err := g.each((*rank).work); err != nil {
				return fmt.Errorf("group of ranks %v: %w", members[i], err)
			}
		}
		// A group of a group, of which that knows nothing.
		inner, err := groups[0].form([]uint64{1}, [][]int{[]int{0, n - 1}[:min(n, 2)]})
		if err != nil {
			return fmt.Errorf("group of a group: %w", err)
		}
		if err := leaveAll(groups...); err != nil {
			return err
		}
		if err := inner[0].each((*rank).work); err != nil {
			return fmt.Errorf("group of a group that has ended: %w", err)
		}
		if err := leaveAll(inner...); err != nil {
			return err
		}
		return w.each((*rank).work)
	})
}

func groupsApart(h *harness, n int) error {
	acts := []struct {
		name string
		do   func(r *rank)
	}{
		{"fails", func(r *rank) { r.Fail(failureBy(r.me, 0)) }},
		{"is closed by one rank", func(r *rank) { r.Close() }},
	}
	for trial := range 2 * len(acts) {
		act, outer := acts[trial%2], trial/2 == 0
		err := h.world(n, uint64(trial), func(w *world) error {
			if !w.formable(h) {
				return nil
			}
			all := make([]int, n)
			for i := range all {
				all[i] = i
			}
			groups, err := w.form([]uint64{5}, [][]int{all})
			if err != nil {
				return err
			}
			ends, lives := groups[0], w
			if outer {
				ends, lives = lives, ends
			}
			if err := ends.each(func(r *rank) error { act.do(r); return nil }); err != nil {
				return err
			}
			if err := lives.each((*rank).work); err != nil {
				return fmt.Errorf("when the outer group (%v) %s, the other: %w", outer, act.name, err)
			}
			return leaveAll(groups...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func groupRefused(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		if !w.formable(h) {
			return nil
		}
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		err := w.each(func(r *rank) error {
			for _, members := range [][]int{nil, {r.me, n}, {-1, r.me}, {r.me, r.me}, {(r.me + 1) % n}} {
				if _, err := r.form(context.Background(), 9, members); err == nil {
					return fmt.Errorf("rank %d of %d: Group takes %v for members", r.me, n, members)
				}
			}
			if _, err := r.form(cancelled, 9, all); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("Group under a context that has ended: %w", wrong(err, "%q", context.Canceled))
			}
			return r.greet()
		})
		if err != nil {
			return err
		}
		return w.each(func(r *rank) error {
			want := transport.ErrFailed
			if r.me == 0 {
				want = transport.ErrClosed
				r.Close()
			} else {
				r.Fail(failureBy(r.me, 0))
			}
			if _, err := r.form(context.Background(), 10, []int{r.me}); !errors.Is(err, want) {
				return fmt.Errorf("Group: %w", wrong(err, "%q", want))
			}
			return nil
		})
	})
}

func groupGone(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		if !w.formable(h) {
			return nil
		}
		left := newGate(1)
		members := []int{n - 1}
		for q := range n - 1 {
			members = append(members, q)
		}
		return w.each(func(r *rank) error {
			if r.me == n-1 {
				defer left.pass()
				return r.Close()
			}
			if err := w.await(left.opened); err != nil {
				return err
			}
			_, err := r.form(context.Background(), 1, members)
			if lost := (*transport.PeerLostError)(nil); !errors.As(err, &lost) || lost.Rank != 0 {
				return wrong(err, "*PeerLostError of rank 0 of the group, which is rank %d here", n-1)
			}
			return nil
		})
	})
}

// groupLeaks keeps the outer group: nothing of the others may hang on it.
func groupLeaks(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		if !w.formable(h) {
			return nil
		}
		for trial := range uint64(4) {
			before := runtime.NumGoroutine()
			mark, err := w.markedGroup(trial)
			if err != nil {
				return err
			}
			for end := time.Now().Add(h.patience); runtime.NumGoroutine() > before || mark.Value() != nil; runtime.GC() {
				if time.Now().After(end) {
					return fmt.Errorf("after Close of a group of some ranks there are %d goroutines instead of %d, and the group is garbage: %v\n%s",
						runtime.NumGoroutine(), before, mark.Value() == nil, stacks())
				}
			}
		}
		return nil
	})
}

// markedGroup forms a group and closes it. The pointer goes to what only its endpoints
// refer to.
func (w *world) markedGroup(number uint64) (weak.Pointer[marker], error) {
	m := new(marker)
	mark := weak.Make(m)
	groups, err := w.form([]uint64{number}, [][]int{{len(w.ranks) - 1, 0}})
	if err != nil {
		return mark, err
	}
	err = groups[0].each(func(r *rank) error {
		r.SetTimeout(transport.Timeout{After: time.Hour, Warn: func(uint64, []int) { runtime.KeepAlive(m) }})
		for range 5 {
			r.pause()
			if err := r.greet(); err != nil {
				return err
			}
		}
		return nil
	})
	return mark, errors.Join(err, leaveAll(groups...))
}

// patientCalls lets ranks be patient in turns, and all or none of them.
func patientCalls(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		return w.each(func(r *rank) error {
			for i := range 60 {
				r.patient = mix(uint64(i/4*n+r.me))%3 > 0
				if i%4 == 0 {
					r.pause()
				}
				var err error
				switch i % 4 {
				case 0:
					err = r.greet()
				case 1:
					err = r.window(700, i%8 < 4, false)
				case 2:
					err = r.window(300, i%8 < 4, true)
				case 3:
					if r.n > 1 {
						err = r.allPairs(func(from int) int { return 100 + from })
					}
				}
				if err != nil {
					return fmt.Errorf("call %d, patient %v: %w", r.seq, r.patient, err)
				}
			}
			return nil
		})
	})
}

// greet makes a call with payloads that fit a line, if payloads travel.
func (r *rank) greet() error {
	return r.payload(func(q int) int { return min(5*q, transport.InlineBytes, r.PayloadLimit()) })
}
