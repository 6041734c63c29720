package ccltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
	"github.com/goccl/goccl/transport"
)

// few elements for each rank are several pieces in the smallest medium.
const few = 5

// sample returns a call with data on all ranks, about as many elements for each rank.
func (g *group) sample(elements int) (*calls.Call, error) {
	n := len(g.ranks)
	j := g.newCall(ccl.Int32, ccl.Sum, elements*n+1, n-1)
	for r := range n {
		if j.Counts != nil {
			j.Counts[r] = elements + r
		}
		for to := range j.Matrix {
			j.Matrix[r][to] = elements + (r+2*to)%3
		}
	}

	jobs := []*calls.Call{j}
	if k := g.s.kernel(); k.Supports != nil {
		jobs = append(jobs, g.jobs()...)
	}
	jobs, err := g.supported(jobs)
	if err != nil {
		return nil, err
	}
	return jobs[0], nil
}

// sampled connects n ranks in medium w, which all run script with the same call.
func (s *subject) sampled(w medium, n int, p probe, script func(r *rank, j *calls.Call) error) error {
	return s.with(w, n, p, func(g *group) error {
		j, err := g.sample(few)
		if err != nil {
			return err
		}
		return g.each(func(r *rank) error { return script(r, j) })
	})
}

func cancels(s *subject, w medium, n int) error {
	for _, check := range []func(s *subject, w medium, n int) error{cancelledBefore, cancelledWaiting, missing} {
		if err := check(s, w, n); err != nil {
			return err
		}
	}
	return nil
}

// cancelledBefore makes a call with a context that has ended, and then a valid one.
func cancelledBefore(s *subject, w medium, n int) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return s.sampled(w, n, probe{}, func(r *rank, j *calls.Call) error {
		a := r.attempt(j)
		if err := a.call(ctx); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the context had ended before the call, which returned %v", err)
		}
		if err := a.call(context.Background()); err != nil {
			return fmt.Errorf("the call after one that all ranks refused: %w", err)
		}
		return a.Right()
	})
}

// cancelledWaiting cancels rank 0 while it waits for the last rank, which calls only after
// that.
func cancelledWaiting(s *subject, w medium, n int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var armed atomic.Bool
	returned := make(chan struct{})
	p := probe{step: func(rank int) {
		if rank == 0 && armed.CompareAndSwap(true, false) {
			go func() { // rank 0 has checked its context and is about to wait
				yield(n * 10)
				cancel()
			}()
		}
	}}
	return s.sampled(w, n, p, func(r *rank, j *calls.Call) error {
		a := r.attempt(j)
		switch r.me {
		case 0:
			armed.Store(true)
			err := a.call(ctx)
			close(returned)
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("cancelled while it waited, the call returned %v", err)
			}
			return nil

		case n - 1:
			<-returned
		}
		return namesAborter(a.call(context.Background()), 0)
	})
}

// missing makes a call on all ranks except the last.
func missing(s *subject, w medium, n int) error {
	return s.sampled(w, n, probe{}, func(r *rank, j *calls.Call) error {
		if r.me == n-1 {
			return nil
		}
		err := r.attempt(j).call(context.Background(), ccl.WithTimeout(5*time.Millisecond))
		timeout, ok := errors.AsType[*transport.TimeoutError](err)
		if !ok || !slices.Contains(timeout.Missing, n-1) {
			return fmt.Errorf("rank %d did not call; waiting for it returned %v", n-1, err)
		}
		return nil
	})
}

func namesAborter(err error, by int) error {
	aborted, ok := errors.AsType[*transport.AbortedError](err)
	if _, failed := errors.AsType[*ccl.CollectiveFailedError](err); !failed || !ok || aborted.By != by {
		return fmt.Errorf("rank %d gave up; the call returned %v", by, err)
	}
	return nil
}

// exit is a way in which a rank leaves a group.
type exit struct {
	name string
	do   func(r *rank, cancel func())
	// self checks the error of the rank that exits, others the error of each other rank.
	self, others func(err error, who int) error
}

var errGaveUp = errors.New("gave up")

var exits = []exit{
	{"aborts", func(r *rank, _ func()) { r.comm.Abort(errGaveUp) }, namesAborter, namesAborter},
	{"leaves", func(r *rank, _ func()) { r.comm.Close() }, closed, namesLost},
	{"is cancelled", func(_ *rank, cancel func()) { cancel() }, cancelled, namesAborter},
}

func closed(err error, who int) error {
	if errors.Is(err, ccl.ErrClosed) {
		return nil
	}
	return namesLost(err, who) // another rank was the first to notice
}

func cancelled(err error, _ int) error {
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("cancelled, its call returned %v", err)
	}
	return nil
}

func namesLost(err error, who int) error {
	lost, ok := errors.AsType[*transport.PeerLostError](err)
	if _, failed := errors.AsType[*ccl.CollectiveFailedError](err); !failed || !ok || lost.Rank != who {
		return fmt.Errorf("rank %d left; the call returned %v", who, err)
	}
	return nil
}

// leaves makes a call in a new group for every step of every rank; at that step the rank or
// the next one leaves. Of many steps it tries only some of the later ones. Where ranks that
// are awake run the others' bodies, it repeats this with a call long enough for that.
func leaves(s *subject, w medium, n int) error {
	helped := 34 << 10 // of 4 bytes each: the inputs and outputs of n ranks are longer than 256 KiB
	if s.coll.Traits().Input != s.coll.Traits().Output {
		helped *= 2 // only one of the two is that long
	}
	lengths := []int{few}
	if w.helps && s.kernel().AnyRunner && (n <= 3 || !s.short) {
		lengths = append(lengths, helped/(n*n))
	}
	for _, length := range lengths {
		stride, dense := 1, 64 // number of steps after which the stride doubles
		if n > 3 || length > few || s.short {
			stride = n + 2
		}
		if length > few {
			dense = 4
		}

		for i, e := range exits {
			for trigger := range n {
				step := (i + trigger) % stride
				for tried := 0; ; tried++ {
					l := leaving{s, w, n, length, e, trigger, step, (trigger + tried%2) % n}
					reached, err := l.try()
					if err != nil {
						return fmt.Errorf("rank %d %s as rank %d takes step %d of its call: %w", l.who, e.name, trigger, step, err)
					}
					if !reached {
						break
					}

					step += stride << (tried / dense)
				}
			}
		}
	}
	return nil
}

// leaving is a call in which rank who exits when rank trigger takes step number step.
type leaving struct {
	s       *subject
	w       medium
	n       int
	length  int // of the call, in elements for each rank
	exit    exit
	trigger int
	step    int
	who     int
}

// try makes the call in a new group. reached is false if trigger takes fewer steps.
func (l *leaving) try() (reached bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var act func()
	var armed atomic.Bool
	var steps atomic.Int64
	p := probe{step: func(rank int) {
		if rank == l.trigger && armed.Load() && steps.Add(1) == int64(l.step)+1 {
			act()
		}
	}}

	err = l.s.with(l.w, l.n, p, func(g *group) error {
		act = func() { l.exit.do(g.ranks[l.who], cancel) }
		j, err := g.sample(l.length)
		if err != nil {
			return err
		}

		attempts := make([]attempt, l.n)
		err = g.each(func(r *rank) error {
			if err := r.comm.Barrier(context.Background()); err != nil {
				return err
			}
			if r.me == l.trigger {
				armed.Store(true)
			}
			within := context.Background()
			if r.me == l.who {
				within = ctx
			}

			a := r.attempt(j)
			attempts[r.me] = a
			err := a.call(within)
			switch {
			case err == nil:
				if err = a.Right(); err != nil {
					err = fmt.Errorf("its call returned no error, but %w", err)
				}
			case r.me == l.who:
				err = l.exit.self(err, l.who)

			default:
				err = l.exit.others(err, l.who)
			}
			err = errors.Join(err, a.Fences())
			a.Spoil()
			return err
		})
		if err != nil {
			return err
		}

		for r, a := range attempts {
			if err := a.Untouched(); err != nil {
				return fmt.Errorf("rank %d: %w", r, err)
			}
		}
		return nil
	})
	return steps.Load() > int64(l.step), err
}
