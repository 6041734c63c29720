//go:build interleave

package seeds

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
)

// runWorkAgain starts a Work on one group and, as soon as it has ended, on another one. The first
// has more calls in its queue, and a Drain waits for them.
func runWorkAgain(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 3)
	isRefused, drains, moment := s.IntN(2) == 0, s.IntN(2) == 0, s.IntN(2<<s.IntN(6))
	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		ctx := context.Background()
		second, err := c.Split(ctx, 0, c.Rank())
		if err != nil {
			s.alarmf("rank %d: %v", c.Rank(), err)
			return
		}
		var again, other ccl.Work
		var beside interleave.WaitGroup
		err = errors.Join(c.Barrier(ctx, ccl.WithWork(&again)), c.Barrier(ctx, ccl.WithWork(&other)))
		if drains {
			beside.Go(func() {
				pause(moment)
				if err := c.Drain(ctx); err != nil {
					s.alarmf("Drain of rank %d, in a group in which nothing has failed: %v", c.Rank(), err)
				}
			})
		}
		err = errors.Join(err, again.Wait(ctx))
		if isRefused { // by all ranks: the group lives on
			_ = ccl.AllReduce(ctx, second, make([]float32, 3), make([]float32, 4), ccl.Sum, ccl.WithWork(&again))
			<-doneOf(&again)
		} else {
			err = errors.Join(err, second.Barrier(ctx, ccl.WithWork(&again)), again.Wait(ctx))
		}
		err = errors.Join(err, other.Wait(ctx))
		beside.Wait()
		if isRefused && second.Drain(ctx) == nil {
			s.alarmf("Drain of rank %d forgets a call that has failed", c.Rank())
		}
		if err = errors.Join(err, second.Close()); err != nil {
			s.alarmf("rank %d: %v", c.Rank(), err)
		}
	})
	return r, s.wrap(err, "refused %v, drains %v", isRefused, drains)
}

// doneOf returns the channel of a Work, which has been received from.
func doneOf(w *ccl.Work) <-chan struct{} {
	done := w.Done()
	interleave.Receive(done)
	return done
}

// runDrained drains receives to which a message comes, or whose sender leaves. If Drain returns nil
// they have ended, and none has failed.
func runDrained(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 2)
	sends, isAny, moment := s.IntN(2) == 0, s.IntN(2) == 0, s.IntN(2<<s.IntN(7))
	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		ctx := context.Background()
		if c.Rank() == 0 {
			pause(moment)
			if sends {
				_ = ccl.Send(ctx, c, []int32{1}, 1, 0)
			}
			_ = c.Close()
			return
		}
		from := 0
		if isAny {
			from = ccl.AnySource
		}
		w := ccl.Irecv(ctx, c, make([]int32, 1), from, 0)
		err := c.Drain(ctx)
		hasEnded := false
		select {
		case <-w.Done():
			hasEnded = true
		default:
		}
		if err == nil && (!hasEnded || w.Err() != nil) {
			s.alarmf("Drain of rank 1 has returned nil, and its receive has ended %v, with %v", hasEnded, w.Err())
		}
		_ = w.Wait(ctx)
	})
	return r, s.wrap(err, "sends %v", sends)
}

// runQueued makes a call behind one that waits for rank 1. It ends by its own timeout, or context.
func runQueued(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 2)
	const limit = 5 * time.Second
	isCancelled, moment := s.IntN(2) == 0, s.drawMoment()
	o.Patience = 2 * limit
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		bg := context.Background()
		if c.Rank() == 1 {
			s.hold()
			if err := c.Barrier(bg); err != nil {
				s.alarmf("rank 1: %v", err)
			}
			return
		}
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var first ccl.Work
		var beside interleave.WaitGroup
		_ = c.Barrier(bg, ccl.WithWork(&first), ccl.WithTimeout(-1))
		if isCancelled {
			beside.Go(func() {
				pause(moment)
				cancel()
			})
		}
		start := time.Now()
		err := c.Barrier(ctx, ccl.WithTimeout(limit))
		late := timeoutOf(err)
		if isCancelled != errors.Is(err, context.Canceled) || !isCancelled && (late == nil || time.Since(start) < limit) {
			s.alarmf("rank 0, behind a call that waits for rank 1, after %v: %v", time.Since(start), err)
		}
		s.end()
		beside.Wait()
		if err := first.Wait(bg); err != nil {
			s.alarmf("rank 0: %v", err)
		}
	})
	return r, s.wrap(err, "cancelled %v", isCancelled)
}
