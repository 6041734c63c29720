package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
	"weak"

	"github.com/goccl/goccl/transport"
)

// withdrawInside cancels the context of a rank while the body of its successor
// is under way.
func withdrawInside(h *harness, n int) error {
	for trial := range 8 * n {
		leaver, shared, bytes := trial%n, trial/n%2 == 0, work[trial/n/2%len(work)]
		holder := (leaver + 1) % n
		err := h.world(n, uint64(trial), func(w *world) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var memory []byte                       // of the leaver
			ended := false                          // left by the body without any synchronisation
			seen := w.ranks[leaver].Memory() != nil // else nobody can touch it, and there is nobody to wait for
			hold := func() error {
				cancel()
				yield(1000) // a leaver that does not wait for the end is away long before
				if seen {
					poison(memory)
					ended = true
				}
				return nil
			}
			return w.each(func(r *rank) error {
				if r.me == leaver {
					memory = make([]byte, 64)
				}
				if err := r.enter(r.entry()); err != nil {
					return err
				}
				e := r.entry()
				e.Exposed, e.AnyRunner, e.Work = true, shared, bytes
				if r.me == leaver {
					e.Ctx, e.Send = ctx, memory
				}
				err := r.call(e, func(b *rank) error {
					if b.me == holder {
						return hold()
					}
					b.yield()
					return nil
				})
				allowed := transport.ErrFailed
				if r.me == leaver {
					allowed = context.Canceled
				}
				if err != nil && !errors.Is(err, allowed) {
					return wrong(err, "nil or %q", allowed)
				}
				if r.me == leaver && seen && !ended {
					if err == nil {
						return errors.New("the call succeeded before the body of another rank had ended")
					}
					return errors.New("Withdraw returned while another rank was inside the call")
				}
				if r.me == leaver {
					memory[0] = 1 // mine again
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("rank %d gives up while rank %d's body is run (shared %v, work %d): %w", leaver, holder, shared, bytes, err)
		}
	}
	return nil
}

// withdrawEarly lets a rank give up a call that not all have entered.
func withdrawEarly(h *harness, n int) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for trial := range 6 * n {
		leaver, shared := trial%n, trial/n%2 == 0
		early := (leaver + 1) % n // enters without waiting for the leaver to be gone
		if n == 2 {
			early = noRank
		}
		err := h.world(n, uint64(trial), func(w *world) error {
			gone := newGate(1)
			return w.each(func(r *rank) error {
				if err := r.enter(r.entry()); err != nil {
					return err
				}
				e := r.entry()
				e.Exposed, e.AnyRunner, e.Work = true, shared, work[trial%len(work)]
				body := func(b *rank) error { return fmt.Errorf("rank %d runs the body of rank %d", r.me, b.me) }
				if r.me == leaver {
					r.pause()
					e.Ctx = ctx
					err := r.call(e, body)
					gone.pass()
					if !errors.Is(err, context.Canceled) {
						return wrong(err, "%q", context.Canceled)
					}
					return nil
				}
				if r.me == early {
					r.pause()
				} else if err := w.await(gone.opened); err != nil {
					return err
				}
				if err := r.call(e, body); !errors.Is(err, transport.ErrFailed) {
					return wrong(err, "ErrFailed")
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("rank %d gives up before all have arrived (shared %v): %w", leaver, shared, err)
		}
	}
	return nil
}

// withdrawStuck tries again with more time if the machine is so slow that the
// call's timeout is over before all have entered it.
func withdrawStuck(h *harness, n int) error {
	var err error
	for limit := 20 * time.Millisecond; limit < 2*time.Second; limit *= 2 {
		err = stuckInTime(h, n, limit)
		if !errors.As(err, new(*transport.TimeoutError)) {
			return err
		}
	}
	return err
}

// stuckInTime lets rank 0 give up a call in which rank 1's body goes on until
// rank 0 is away.
func stuckInTime(h *harness, n int, limit time.Duration) error {
	return h.world(n, 0, func(w *world) error {
		inside, gone := newGate(2), newGate(1)
		return w.each(func(r *rank) error {
			e := r.entry()
			e.Exposed = true
			if r.me == 0 {
				e.Limit = transport.Timeout{After: limit}
			}
			if err := r.enter(e); err != nil {
				return err
			}
			inside.pass()
			if err := w.await(inside.opened); err != nil {
				return err
			}
			if r.me == 1 {
				if err := w.await(gone.opened); err != nil {
					return err
				}
				_ = r.leave(e, errBody)
				return nil
			}
			r.Fail(failureOf(r.me, e.Seq, errBody))
			begin := time.Now()
			ended := r.Withdraw()
			took := time.Since(begin)
			gone.pass()
			if ended || r.Memory() != nil && took < limit {
				return fmt.Errorf("Withdraw returned %v after %v, with rank 1 inside the call and a timeout of %v",
					ended, took, limit)
			}
			return nil
		})
	})
}

// contexts ends rank 0's call by its context while rank 1 waits, too, and rank 2
// is yet to come.
func contexts(h *harness, n int) error {
	for trial := range 21 {
		err := h.world(n, uint64(trial), func(w *world) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			want := context.Canceled
			if trial%3 == 2 {
				var stop context.CancelFunc
				ctx, stop = context.WithDeadline(ctx, time.Now().Add(-time.Hour))
				defer stop()
				want = context.DeadlineExceeded
			}
			gone := newGate(1)
			return w.each(func(r *rank) error {
				for range trial % 2 {
					if err := r.enter(r.entry()); err != nil {
						return err
					}
				}
				e := r.entry()
				switch r.me {
				case 0:
					if trial%3 == 0 {
						cancel()
					} else {
						go func() {
							yield(20 * trial)
							cancel()
						}()
					}
					e.Ctx = ctx
					_, err := r.Enter(e)
					gone.pass()
					if !errors.Is(err, want) {
						return wrong(err, "%q", want)
					}
					return nil
				case 1: // has a context of its own, which does not end
					other, cancelOther := context.WithCancel(context.Background())
					defer cancelOther()
					e.Ctx = other
				case 2:
					if err := w.await(gone.opened); err != nil {
						return err
					}
				}
				return r.enter(e)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func closing(h *harness, n int) error {
	for trial := range 4 {
		err := h.world(n, uint64(trial), func(w *world) error {
			return w.each(func(r *rank) error {
				for range trial + 1 {
					if err := r.window(64, false, true); err != nil {
						return err
					}
				}
				again := make(chan error)
				for range 2 { // also at the same time
					go func() { again <- r.Close() }()
				}
				for _, err := range []error{r.Close(), <-again, <-again, r.Close()} {
					if err != nil {
						return fmt.Errorf("Close: %w", err)
					}
				}
				return r.useAfterClose()
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *rank) useAfterClose() error {
	for i := range 4 {
		e := r.entry()
		e.Exposed, e.AnyRunner = i&1 != 0, i&2 != 0
		if _, err := r.Enter(e); !errors.Is(err, transport.ErrClosed) {
			return fmt.Errorf("Enter (exposed %v, shared %v): %w", e.Exposed, e.AnyRunner, wrong(err, "ErrClosed"))
		}
		if r.Withdraw() {
			return fmt.Errorf("Withdraw says that call %d has ended well, which this rank has not entered (exposed %v, shared %v)", e.Seq, e.Exposed, e.AnyRunner)
		}
	}
	if r.n > 1 {
		if _, err := r.Next((r.me + 1) % r.n); !errors.Is(err, transport.ErrClosed) {
			return fmt.Errorf("Next: %w", wrong(err, "ErrClosed"))
		}
	}
	if r.Rank() != r.me || r.Size() != r.n {
		return fmt.Errorf("the endpoint says that it is rank %d of %d", r.Rank(), r.Size())
	}
	r.Fail(failureBy(r.me, 0)) // what it returns is nobody's business any more
	r.Failed()
	r.Failure()
	return nil
}

// marker is referred to by whatever a transport leaves behind.
type marker [64]byte

func leaks(h *harness, n int) error {
	// A context that outlives the groups, as a program's does.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for trial := range 4 {
		before := runtime.NumGoroutine()
		mark, err := markedWorld(ctx, h, n, trial)
		if err != nil {
			return err
		}
		end := time.Now().Add(h.patience)
		for runtime.NumGoroutine() > before || mark.Value() != nil {
			if time.Now().After(end) {
				return fmt.Errorf("after Close there are %d goroutines instead of %d, and the callback of SetTimeout is garbage: %v\n%s",
					runtime.NumGoroutine(), before, mark.Value() == nil, stacks())
			}
			runtime.GC()
		}
	}
	return nil
}

// markedWorld opens a group, uses what needs timers and contexts, and closes it.
// The pointer goes to what only the endpoints' timeouts refer to.
func markedWorld(ctx context.Context, h *harness, n, trial int) (weak.Pointer[marker], error) {
	m := new(marker)
	mark := weak.Make(m)
	err := h.world(n, uint64(trial), func(w *world) error {
		return w.each(func(r *rank) error {
			r.SetTimeout(transport.Timeout{
				After: time.Hour,
				Warn:  func(uint64, []int) { runtime.KeepAlive(m) },
			})
			for range 10 {
				r.pause() // so that others wait long enough to use what they have
				e := r.entry()
				e.Ctx, e.AnyRunner, e.Exposed, e.Work = ctx, true, true, work[3]
				if err := r.call(e, func(*rank) error { return nil }); err != nil {
					return err
				}
			}
			if trial%2 == 0 {
				return nil
			}
			if r.me == n-1 { // the last rank leaves while the others wait for it
				yield(400)
				return r.Close()
			}
			e := r.entry()
			e.Ctx, e.Limit = ctx, transport.Timeout{After: 2 * time.Hour}
			_, err := r.Enter(e)
			return departure.right(err, e, nil, n-1)
		})
	})
	return mark, err
}
