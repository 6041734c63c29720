//go:build interleave

package seeds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// runInside runs one call in which ranks read each other's memory, and in which a rank gives up or
// a body fails. No kernel sees memory of a rank that has returned, and the call succeeds on all
// ranks or on none.
func runInside(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 4)
	all := &group{}
	for rank := range s.ranks {
		all.members = append(all.members, rank)
	}
	e := &event{number: 1, what: call, group: all, isInside: make([]bool, s.ranks)}
	j := &job{ranks: s.ranks, groups: []*group{all}, events: []*event{e}, hasBodies: true}
	j.fault = mishap{way: []way{wayCancels, wayAborts, wayFails}[s.IntN(3)], rank: s.IntN(s.ranks)}
	j.fault.inCall = j.fault.rank
	reading = j

	name, moment := []string{"reads", "reads-any"}[s.IntN(2)], s.drawMoment()
	errs, delays := make([]error, s.ranks), make([]int, s.ranks)
	for rank := range delays {
		delays[rank] = s.IntN(2 << s.IntN(6))
	}
	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		rank, isBy := c.Rank(), c.Rank() == j.fault.rank
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var beside interleave.WaitGroup
		if isBy {
			beside.Go(func() {
				pause(moment)
				switch j.fault.way {
				case wayCancels:
					cancel()
				case wayAborts:
					c.Abort(errGone)
				}
			})
		}

		pause(delays[rank])
		x := make([]float32, readLength+e.number)
		e.setInside(rank, true)
		errs[rank] = ccl.AllReduce(ctx, c, x, x, ccl.Sum, ccl.WithAlgorithm(name))
		e.setInside(rank, false)
		beside.Wait()
	})
	isFailed := func(err error) bool { return err != nil }
	if n := len(errs) - len(slices.DeleteFunc(slices.Clone(errs), isFailed)); n > 0 && n < len(errs) {
		err = errors.Join(err, fmt.Errorf("torn: the errors of ranks are %v", errs))
	}
	return r, s.wrap(errors.Join(append(j.strays, err)...), "%q: %v", name, &j.fault)
}

// runDifferent lets a rank make another call: all get the same error.
func runDifferent(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 4)
	by, n := s.IntN(s.ranks), []int{shortSum, longSum}[s.IntN(2)]
	errs := make([]error, s.ranks)
	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		k := n
		if c.Rank() == by {
			k++
		}
		errs[c.Rank()] = sum(context.Background(), c, k)
	})

	first, _ := errors.AsType[*ccl.MismatchError](errs[0])
	for rank := range errs {
		m, _ := errors.AsType[*ccl.MismatchError](errs[rank])
		if m == nil || m.Field != "count" || !reflect.DeepEqual(m, first) {
			err = errors.Join(err, fmt.Errorf("rank %d, of which rank %d makes another call: %v, and rank 0: %w", rank, by, errs[rank], errs[0]))
		}
	}
	return r, s.wrap(err, "rank %d makes another call", by)
}

// runSharedMemory lets ranks bring the same memory: where it is short and one of them reads it, the
// call uses the value from before; otherwise it is a mismatch on all ranks, and nothing is written.
func runSharedMemory(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 3)
	isRead := s.IntN(2) == 0
	shared, n := []int32{5}, 1
	if !isRead {
		n = []int{20, longSum}[s.IntN(2)]
		shared = make([]int32, n)
	}
	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		send, recv := slices.Repeat([]int32{1}, n), make([]int32, n)
		switch {
		case c.Rank() == 0 && isRead:
			send = shared
		case c.Rank() < 2:
			recv = shared
		}
		err := ccl.AllReduce(context.Background(), c, send, recv, ccl.Sum, ccl.WithAlgorithm("direct"))
		m, _ := errors.AsType[*ccl.MismatchError](err)
		switch {
		case !isRead && (m == nil || m.Field != "buffers"):
			s.alarmf("rank %d writes the memory of another one: %v", c.Rank(), err)
		case isRead && m != nil && m.Field == "buffers" && s.waiting != local.Poll: // where ranks park inputs are not copied
		case isRead && (err != nil || recv[0] != int32(4+s.ranks)):
			s.alarmf("rank %d: the sum is %v (%v)", c.Rank(), recv, err)
		}
	})
	if i := slices.IndexFunc(shared, func(x int32) bool { return x != 0 }); !isRead && i >= 0 {
		err = errors.Join(err, fmt.Errorf("element %d of memory that two ranks bring is %d", i, shared[i]))
	}
	return r, s.wrap(err, "one slice on two ranks")
}

// runTwoCauses lets two goroutines of a rank abort a group: all ranks see one cause, and always the
// same.
func runTwoCauses(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 3)
	moment := s.IntN(2 << s.IntN(5))
	seen := make([][]error, s.ranks)
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		var others interleave.WaitGroup
		if c.Rank() == 0 {
			others.Go(func() { c.Abort(errGone) })
			others.Go(func() {
				pause(moment)
				c.Abort(errTired)
			})
		}
		for len(seen[c.Rank()]) < 3 {
			if err := cmp.Or(c.Err(), c.Barrier(context.Background())); err != nil {
				seen[c.Rank()] = append(seen[c.Rank()], err)
			}
		}
		others.Wait()
		seen[c.Rank()] = append(seen[c.Rank()], c.Err())
	})
	for rank, errs := range seen {
		isOther := func(e error) bool { return errors.Is(e, errGone) != errors.Is(seen[0][0], errGone) }
		if slices.ContainsFunc(errs, isOther) {
			err = errors.Join(err, fmt.Errorf("cause: rank %d has seen %v, and rank 0 %w", rank, errs, seen[0][0]))
		}
	}
	return r, s.wrap(err, "rank 0 aborts twice")
}

// runEndedForm cancels the context of a rank while ranks make a group: the others learn why, and not
// that it has left. Or the rank leaves: then they do not wait for it.
func runEndedForm(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 3)
	by, moment, leaves := s.IntN(s.ranks), s.drawMoment(), s.IntN(2) == 0
	if leaves {
		o.Patience = patience
	}
	members := make([]int, s.ranks)
	for rank := range members {
		members[rank] = rank
	}
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var beside interleave.WaitGroup
		if c.Rank() == by {
			beside.Go(func() {
				pause(moment)
				if leaves {
					_ = c.Close()
				} else {
					cancel()
				}
			})
		}
		made, err := c.NewGroup(ctx, members)
		aborted, _ := errors.AsType[*transport.AbortedError](err)
		isOther := aborted != nil && aborted.By == by && errors.Is(err, context.Canceled) || slices.Equal(rejectersIn(err), []int{by})
		if late := timeoutOf(err); late != nil && !leaves { // it may be cancelled in the call that comes before, and not come
			isOther = slices.Equal(late.Missing, []int{by})
		}
		isItself := errors.Is(err, context.Canceled)
		if leaves {
			isItself = errors.Is(err, ccl.ErrClosed) || lostIn(err) == by
			isOther = lostIn(err) == by || aborted != nil && aborted.By == by && errors.Is(err, ccl.ErrClosed)
		}
		if err != nil && !isOther && !(c.Rank() == by && isItself) {
			s.alarmf("rank %d, beside rank %d, which leaves (%v) or is cancelled: %v", c.Rank(), by, leaves, err)
		}
		beside.Wait()
		if made != nil {
			_ = made.Close()
		}
	})
	return r, s.wrap(err, "rank %d is cancelled, or leaves (%v)", by, leaves)
}

// runStrayTicks lets a call with a long timeout follow one with a short timeout. Time passes while
// ranks poll. The second times out no earlier than it says.
func runStrayTicks(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 2)
	const short, long = time.Second, time.Minute
	o.IsLate = true
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		ctx := context.Background()
		if c.Rank() == 1 {
			interleave.Sleep(short / 4) // rank 0 sleeps by then
		}
		if err := c.Barrier(ctx, ccl.WithTimeout(short)); err != nil { // time may run ahead
			if c.Rank() == 0 {
				s.end()
			}
			return
		}
		if c.Rank() == 1 {
			s.hold()
			return
		}
		start := time.Now()
		err := c.Barrier(ctx, ccl.WithTimeout(long))
		if late := timeoutOf(err); late != nil && late.After == long && time.Since(start) < long {
			s.alarmf("rank 0, which waits for rank 1, after %v: %v", time.Since(start), err)
		}
		s.end()
	})
	return r, s.wrap(err, "rank 1 does not make the second call")
}
