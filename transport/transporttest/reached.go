package transporttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/transport"
)

// What a rank can do right after it has done what another waits for.
const (
	nothing = iota
	closes
	fails
)

var wayNames = [...]string{nothing: "nothing more", closes: "it leaves the group", fails: "it makes the group fail"}

func (r *rank) goWay(way int) {
	switch way {
	case closes:
		r.Close()
	case fails:
		r.Fail(failureBy(r.me, 0))
	}
}

// reachedEnter lets ranks enter one after the other with a context that has
// ended. All but the last give up, but their lines are there for the last.
func reachedEnter(h *harness, n int) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for trial := range 6 {
		way, exposed := trial%3, trial/3 == 1
		err := h.world(n, 0, func(w *world) error {
			turns := make([]*gate, n+1)
			for i := range turns {
				turns[i] = newGate(1)
			}
			turns[0].pass()
			return w.each(func(r *rank) error {
				if err := r.enter(r.entry()); err != nil {
					return err
				}
				if err := w.await(turns[r.me].opened); err != nil {
					return err
				}
				defer turns[r.me+1].pass()
				e := r.entry()
				e.Ctx, e.Exposed = ctx, exposed
				_, err := r.Enter(e)
				switch {
				case r.me < n-1 && !errors.Is(err, context.Canceled):
					return wrong(err, "%q, with which the call began", context.Canceled)
				case r.me == n-2:
					r.goWay(way)
				case r.me == n-1 && exposed && way == fails:
					if !errors.Is(err, transport.ErrFailed) {
						return wrong(err, "ErrFailed: the call is exposed, and the failure was there before")
					}
				case r.me == n-1 && err != nil:
					return fmt.Errorf("all others had entered the call: %w", err)
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("the last rank but one enters, then %s (exposed %v): %w", wayNames[way], exposed, err)
		}
	}
	return nil
}

// reachedInside lets rank 1 do what rank 0 is going to wait for, ends the context
// of both, and lets rank 1 go out of the game.
func reachedInside(h *harness, n int) error {
	kinds := []struct {
		name string
		// before is done by rank 0, act by rank 1 and after by rank 0, which must
		// succeed.
		before func(r *rank, m transport.Message) error
		act    func(r *rank, m transport.Message, cancel func()) error
		after  func(r *rank, m transport.Message) error
	}{
		{
			"a message was put",
			func(*rank, transport.Message) error { return nil },
			func(r *rank, m transport.Message, cancel func()) error {
				defer cancel()
				return r.exchange(0, m, noRank, m)
			},
			func(r *rank, m transport.Message) error { return r.exchange(noRank, m, 1, m) },
		},
		{
			"a message was taken",
			func(r *rank, m transport.Message) error { return r.exchange(1, m, noRank, m) },
			func(r *rank, m transport.Message, cancel func()) error {
				defer cancel()
				return r.exchange(noRank, m, 0, m)
			},
			func(r *rank, _ transport.Message) error { return r.Drain(1) },
		},
		{
			"the peer has said Complete",
			func(*rank, transport.Message) error { return nil },
			func(r *rank, _ transport.Message, cancel func()) error {
				cancel()
				if err := r.Complete(); !errors.Is(err, context.Canceled) {
					return wrong(err, "%q", context.Canceled)
				}
				return nil
			},
			func(r *rank, _ transport.Message) error { return r.Complete() },
		},
	}
	for trial := range 3 * len(kinds) {
		kind, way := kinds[trial/3], trial%3
		err := h.world(n, uint64(trial), func(w *world) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			inside, acted, over := newGate(2), newGate(1), newGate(1)
			return w.each(func(r *rank) error {
				e := r.entry()
				e.Ctx, e.Exposed = ctx, true
				if err := r.enter(e); err != nil {
					return err
				}
				m := letter(e.Seq, 0, 1, 1, 0)
				if r.me == 0 {
					if err := kind.before(r, m); err != nil {
						return err
					}
				}
				inside.pass()
				if err := w.await(inside.opened); err != nil {
					return err
				}
				if r.me == 1 {
					if err := kind.act(r, m, cancel); err != nil {
						return err
					}
					r.goWay(way)
					acted.pass()
					if err := w.await(over.opened); err != nil {
						return err
					}
				} else {
					if err := w.await(acted.opened); err != nil {
						return err
					}
					if err := kind.after(r, m); err != nil {
						return err
					}
					over.pass()
				}
				_ = r.leave(e, errStopped)
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("%s, the context has ended, then %s: %w", kind.name, wayNames[way], err)
		}
	}
	return nil
}

// reachedLeaving lets a rank go out of the game right after its last call, which
// others may still be in. The moment in which they could take that for the end of
// the call is short, so there are as many trials as a twentieth of a second allows.
func reachedLeaving(h *harness, n int) error {
	end := time.Now().Add(50 * time.Millisecond)
	for trial := 0; trial < 16*n || trial < 2000 && time.Now().Before(end); trial++ {
		who, kind, way, slow := trial%n, trial/n%4, closes+trial/n/4%2, trial/n/8%2 == 0
		err := h.world(n, uint64(trial), func(w *world) error {
			return w.each(func(r *rank) error {
				for range 3 {
					if slow {
						r.yield()
					}
					e := r.entry()
					e.Exposed, e.AnyRunner, e.Work = kind&1 != 0, kind&2 != 0, work[trial%len(work)]
					err := r.call(e, func(b *rank) error {
						if slow {
							b.yield()
						}
						return nil
					})
					if err != nil {
						return err
					}
				}
				if r.me == who {
					r.goWay(way)
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("rank %d succeeds, then %s (exposed %v, shared %v): %w",
				who, wayNames[way], kind&1 != 0, kind&2 != 0, err)
		}
	}
	return nil
}
