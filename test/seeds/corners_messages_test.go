//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport/local"
)

// letter returns the elements of message number k.
func letter(k, length int) []int32 {
	return slices.Repeat([]int32{int32(k + 1)}, length)
}

// letters is what a rank has got of the messages that another one has sent it with one tag.
type letters struct {
	lengths []int
	sent    []error
	got     []error
	numbers []int // of the messages that have come, -1: none, or another one
	copied  bool  // a message may arrive whose send has failed
	leaves  bool  // nothing goes wrong but that the sender leaves
}

// drawLetters draws messages of so many elements at most.
func (d drawing) drawLetters(messages, most int) *letters {
	l := &letters{sent: make([]error, messages)}
	for range messages {
		l.lengths = append(l.lengths, most)
	}
	if d.IntN(2) == 0 {
		l.lengths[0] = 1 + d.IntN(most)
	}
	return l
}

// send sends all with one tag, and calls after once they are on their way.
func (l *letters) send(ctx context.Context, c *ccl.Communicator, to int, after func()) {
	var works []*ccl.Work
	var buffers [][]int32
	for k, n := range l.lengths {
		buffers = append(buffers, letter(k, n))
		works = append(works, ccl.Isend(ctx, c, buffers[k], to, 0))
	}
	after()
	for k, w := range works {
		l.sent[k] = w.Wait(context.Background())
		for i := range buffers[k] { // it is the program's again
			buffers[k][i] = spoilt
		}
	}
}

// receive receives as many.
func (l *letters) receive(c *ccl.Communicator, from int) {
	for _, n := range l.lengths {
		x := make([]int32, n)
		_, err := ccl.Recv(context.Background(), c, x, from, 0)
		l.got = append(l.got, err)
		number := -1
		for k := range l.lengths {
			if slices.Equal(x, letter(k, n)) {
				number = k
			}
		}
		l.numbers = append(l.numbers, number)
	}
}

// check checks that what was received are messages, in their order, whose sends have succeeded, and
// that nothing of a rank comes after a receive has failed since that rank is lost.
func (l *letters) check() error {
	isLost, last := false, -1
	for i, err := range l.got {
		if err != nil {
			isLost = isLost || lostIn(err) >= 0
			if l.leaves && lostIn(err) < 0 {
				return fmt.Errorf("rank 1: receive %d has failed, and not since its sender has left: %w", i, err)
			}
			continue
		}
		k := l.numbers[i]
		switch {
		case k < 0:
			return fmt.Errorf("rank 1: receive %d has got something else", i)
		case k <= last:
			return fmt.Errorf("rank 1: receive %d has got message %d, after message %d", i, k, last)
		case isLost:
			return fmt.Errorf("rank 1: receive %d has got message %d, after a receive has failed: %v", i, k, l.got)
		case l.sent[k] != nil && !l.copied:
			return fmt.Errorf("rank 1: receive %d has got message %d, whose send has failed: %w", i, k, l.sent[k])
		}
		last = k
	}
	return nil
}

// runWithdrawn lets rank 0 send messages of one tag, and cancel them or close its group meanwhile.
func runWithdrawn(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 2)
	l, isCancelled, moment := s.drawLetters(1+s.IntN(2), 4), s.IntN(2) == 0, s.drawMoment()
	l.leaves = !isCancelled
	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		if c.Rank() == 1 {
			l.receive(c, 0)
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		l.send(ctx, c, 1, func() {
			pause(moment)
			if isCancelled {
				cancel()
			} else {
				_ = c.Close()
			}
		})
		_ = c.Close()
	})
	return r, s.wrap(errors.Join(err, l.check()), "messages of %d, cancelled %v: rank 0 sends to rank 1", l.lengths, isCancelled)
}

// runSources lets two goroutines of rank 0 receive from one rank each.
func runSources(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 3, 3)
	const messages = 2
	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		ctx := context.Background()
		if c.Rank() > 0 {
			for k := range messages {
				if err := ccl.Send(ctx, c, letter(k, c.Rank()), 0, c.Rank()); err != nil {
					s.alarmf("send %d of rank %d: %v", k, c.Rank(), err)
				}
			}
			return
		}
		var both interleave.WaitGroup
		for from := 1; from < c.Size(); from++ {
			both.Go(func() {
				for k := range messages {
					peer, x := []int{from, ccl.AnySource}[k%2], make([]int32, from)
					source, err := ccl.Recv(ctx, c, x, peer, from)
					if err != nil || source != from || !slices.Equal(x, letter(k, from)) {
						s.alarmf("rank 0 receives message %d of rank %d: from rank %d, %v: %v", k, from, source, x, err)
					}
				}
			})
		}
		both.Wait()
	})
	return r, s.wrap(err, "ranks 1 and 2 send to rank 0")
}

// runChain lets rank 0 wait for a message of rank 1, and rank 1 for one of rank 2, which does not
// come: both name rank 2. Or rank 1 has given up its wait before: then rank 0 names rank 1.
func runChain(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 3, 3)
	hasGivenUp := s.IntN(2) == 0
	moments := []int{s.drawMoment(), s.drawMoment()}
	o.Patience = 2 * messageTime
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		ctx, rank := context.Background(), c.Rank()
		receive := func(want int) {
			_, err := ccl.Recv(ctx, c, make([]int32, 1), rank+1, 0, ccl.WithTimeout(messageTime))
			if late := timeoutOf(err); late == nil || !slices.Equal(late.Behind, []int{want}) {
				s.alarmf("rank %d waits for rank %d, which waits for rank %d, given up %v: %v", rank, rank+1, rank+2, hasGivenUp, err)
			}
		}
		if hasGivenUp {
			if rank == 1 {
				receive(2)
			}
			if err := c.Barrier(ctx); err != nil {
				s.alarmf("rank %d: %v", rank, err)
			}
		}
		switch {
		case rank == 0:
			pause(moments[0])
			if hasGivenUp {
				receive(1)
			} else {
				receive(2)
			}
			s.end()
		case rank == 1 && !hasGivenUp:
			pause(moments[1])
			receive(2)
		}
		s.hold()
	})
	return r, s.wrap(err, "rank 2 does not send")
}

// runRing lets ranks exchange messages in a ring, in which rank 1 stops at some step: whoever waits in
// vain names it.
func runRing(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	const stalled, rounds = 1, 3
	s := newScene(seed, 2, 4)
	moment := 1 + s.IntN(400*s.ranks)
	over := make([]error, s.ranks)
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		rank, n := c.Rank(), c.Size()
		if rank == stalled {
			interleave.At(moment, func() { interleave.Stall(label(stalled), 3*callTime/2) })
		}
		for k := range rounds {
			x := make([]int32, 1)
			if _, over[rank] = ccl.SendRecv(context.Background(), c, letter(k, 1), (rank+1)%n, x, (rank+n-1)%n, k); over[rank] != nil {
				break
			}
		}
		interleave.Sleep(4 * callTime) // all have ended
	})
	for rank, e := range over {
		if late := timeoutOf(e); e != nil && (late == nil || !slices.Equal(slices.Concat(late.Missing, late.Behind), []int{stalled})) {
			err = errors.Join(err, fmt.Errorf("rank %d of a ring in which rank %d has stopped: %w", rank, stalled, e))
		}
	}
	return r, s.wrap(err, "rank %d stops at step %d", stalled, moment)
}

// runRest ends a Rest of a P2P by Wake, as the contract of transports promises.
func runRest(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	d := drawFor(seed)
	waiting, noSpin, moment := d.machine(), d.IntN(2) == 0, d.IntN(2<<d.IntN(6))
	o.Patience = time.Second
	r := interleave.Run(t, o, func() {
		eps := local.NewWaiting(1, waiting)
		p := eps[0].P2P()
		var both interleave.WaitGroup
		both.Go(func() {
			interleave.SetLabel(label(0))
			p.Rest(func() bool { return false }, noSpin)
		})
		both.Go(func() {
			interleave.SetLabel(label(0))
			pause(moment)
			p.Wake()
		})
		both.Wait()
		_ = eps[0].Close()
	})
	return r, nil
}
