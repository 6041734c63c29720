//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/calls"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// corners are small programs, each about one thing that ranks do at once. A seed draws who does it
// when, and what goes wrong. A job of kind corners is one of them.
var corners = []kind{
	{"awaited", runAwaited},
	{"arrived", runArrived},
	{"inside", runInside},
	{"different", runDifferent},
	{"shared-memory", runSharedMemory},
	{"two-causes", runTwoCauses},
	{"ended-form", runEndedForm},
	{"stray-ticks", runStrayTicks},

	{"withdrawn", runWithdrawn},
	{"sources", runSources},
	{"chain", runChain},
	{"ring", runRing},
	{"rest", runRest},

	{"work-again", runWorkAgain},
	{"drained", runDrained},
	{"queued", runQueued},
	{"halo", runHalo},
	{"checkpoints", runCheckpoints},

	{"pieces", runPieces},
	{"parts", runParts},
	{"arrived-processes", runArrivedProcesses},
	{"recorded", runRecorded},
}

// runCorners runs one of the corners.
func runCorners(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	c := corners[calls.Mix(seed)%uint64(len(corners))]
	r, err := c.run(t, seed, o)
	if err != nil {
		err = fmt.Errorf("%s: %w", c.name, err)
	}
	return r, err
}

// scene is a program of a few ranks.
type scene struct {
	drawing
	ranks   int
	waiting local.Waiting
	comms   []*ccl.Communicator // by rank
	ended   chan struct{}       // closed by end

	processes []*process // by rank, where ranks are processes

	mu     interleave.Mutex
	alarms []error
}

// newScene draws a scene of so many ranks, or fewer.
func newScene(seed uint64, least, most int) *scene {
	d := drawFor(seed)
	s := &scene{drawing: d, ranks: least + d.IntN(most-least+1), waiting: d.machine()}
	s.comms = make([]*ccl.Communicator, s.ranks)
	return s
}

// drawMoment draws a number of steps.
func (s *scene) drawMoment() int { return s.IntN(2 << s.IntN(9)) }

// pause takes so many steps.
func pause(steps int) {
	for range steps {
		interleave.Step()
	}
}

// run runs the part of each rank, and closes the groups when all have ended.
func (s *scene) run(t *testing.T, o interleave.Options, part func(c *ccl.Communicator)) (interleave.Result, error) {
	var eps endpoints
	r := interleave.Run(t, o, func() {
		s.ended = make(chan struct{})
		each(eps.watch(local.NewWaiting(s.ranks, s.waiting)), func(rank int, ep transport.Endpoint) {
			c, err := ccl.New(context.Background(), ep)
			if s.comms[rank] = c; err != nil {
				s.alarmf("rank %d: %v", rank, err)
				return
			}
			part(c)
		})
		for _, c := range s.comms {
			_ = c.Close()
		}
	})
	return r, errors.Join(append(s.alarms, eps.check())...)
}

// hold waits until end is called, and end lets the others go on.
func (s *scene) hold() { interleave.Receive(s.ended) }

func (s *scene) end() {
	interleave.Step()
	close(s.ended)
}

func (s *scene) alarmf(format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarms = append(s.alarms, fmt.Errorf(format, values...))
}

// wrap describes the scene in the first line of an error.
func (s *scene) wrap(err error, format string, values ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%d ranks, waiting %d, %s\n%w", s.ranks, s.waiting, fmt.Sprintf(format, values...), err)
}

// lostIn returns the rank that an error says is lost, or -1.
func lostIn(err error) int {
	if lost, ok := errors.AsType[*transport.PeerLostError](err); ok {
		return lost.Rank
	}
	return -1
}

// rejectersIn returns the ranks that have rejected a call according to an error.
func rejectersIn(err error) (ranks []int) {
	m, ok := errors.AsType[*ccl.MismatchError](err)
	if !ok {
		return nil
	}
	for _, v := range m.Values {
		if v.Outcome == transport.OutcomeRejected {
			ranks = append(ranks, v.Ranks...)
		}
	}
	return ranks
}

// sum makes an all-reduce of n elements, and returns an error if it succeeds with another sum.
func sum(ctx context.Context, c *ccl.Communicator, n int, opts ...ccl.CallOption) error {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(c.Rank() + i)
	}
	err := ccl.AllReduce(ctx, c, x, x, ccl.Sum, opts...)
	for i := range x {
		if want := int32(c.Size()*(c.Size()-1)/2 + c.Size()*i); err == nil && x[i] != want {
			return fmt.Errorf("element %d is %d instead of %d", i, x[i], want)
		}
	}
	return err
}

// Lengths of an all-reduce whose inputs travel with the synchronisation, and of one in which ranks
// read each other's memory.
const (
	shortSum = 3
	longSum  = 2000
)

// refuse makes a call whose arguments are wrong.
func refuse(c *ccl.Communicator) error {
	return ccl.AllReduce(context.Background(), c, make([]int32, 3), make([]int32, 4), ccl.Sum)
}

// awaited are what rank 0 does in runAwaited.
var awaited = []struct {
	name   string
	isCall bool
	run    func(ctx context.Context, c *ccl.Communicator, peer int) error
}{
	{"barrier", true, func(ctx context.Context, c *ccl.Communicator, _ int) error { return c.Barrier(ctx) }},
	{"short sum", true, func(ctx context.Context, c *ccl.Communicator, _ int) error { return sum(ctx, c, shortSum) }},
	{"long sum", true, func(ctx context.Context, c *ccl.Communicator, _ int) error { return sum(ctx, c, longSum) }},
	{"send", false, func(ctx context.Context, c *ccl.Communicator, peer int) error {
		return ccl.Send(ctx, c, []int32{1}, peer, 0)
	}},
	{"receive", false, func(ctx context.Context, c *ccl.Communicator, peer int) error {
		_, err := ccl.Recv(ctx, c, make([]int32, 1), peer, 0)
		return err
	}},
	{"receive from any", false, func(ctx context.Context, c *ccl.Communicator, _ int) error {
		_, err := ccl.Recv(ctx, c, make([]int32, 1), ccl.AnySource, 0)
		return err
	}},
}

// runAwaited lets rank 0 make a call, or send or receive, for which the others do not come before it
// has ended. Something ends it: it does not wait for its timeout.
func runAwaited(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 3)
	op := awaited[s.IntN(len(awaited))]
	ways := []way{wayCancels, wayCloses, wayLeaves, wayAborts, wayRefuses} // of rank 0; of another one
	if !op.isCall {
		ways = ways[:4]
	}
	how, by := ways[s.IntN(len(ways))], 1+s.IntN(s.ranks-1)
	before, moment, isRefused := s.IntN(3), s.drawMoment(), s.IntN(2) == 0 // by all: the group lives on
	isAny := op.name == "receive from any"

	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		if isRefused {
			_ = refuse(c)
		}
		for range before {
			if err := c.Barrier(context.Background()); err != nil {
				s.alarmf("rank %d: before: %v", c.Rank(), err)
			}
		}
		if c.Rank() > 0 {
			isFaulty := c.Rank() == by || isAny && how == wayLeaves
			if isFaulty {
				pause(moment)
			}
			switch {
			case !isFaulty:
			case how == wayLeaves:
				_ = c.Close()
			case how == wayAborts:
				c.Abort(errGone)
			case how == wayRefuses:
				_ = refuse(c)
			}
			s.hold()
			return
		}

		ctx, cancel := context.WithCancel(context.Background())
		var beside interleave.WaitGroup
		beside.Go(func() {
			pause(moment)
			switch how {
			case wayCancels:
				cancel()
			case wayCloses:
				_ = c.Close()
			}
		})
		if err := op.run(ctx, c, by); !isEndedBy(err, how, by, isAny) {
			s.alarmf("%s of rank 0 has ended with %v", op.name, err)
		}
		s.end()
		beside.Wait()
		cancel()
	})
	return r, s.wrap(err, "rank 0 waits in a %s, %s: rank %d", op.name, how, by)
}

// isEndedBy reports whether an error of rank 0 is of what rank by has done.
func isEndedBy(err error, how way, by int, isAny bool) bool {
	switch how {
	case wayCancels:
		return errors.Is(err, context.Canceled)
	case wayCloses:
		return errors.Is(err, ccl.ErrClosed)
	case wayLeaves:
		lost := lostIn(err)
		return lost == by || isAny && lost > 0
	case wayAborts:
		aborted, ok := errors.AsType[*transport.AbortedError](err)
		return ok && aborted.By == by && errors.Is(err, errGone)
	}
	ranks := rejectersIn(err)
	return len(ranks) == 1 && ranks[0] == by
}

// arrivals are calls of runArrived.
var arrivals = []func(ctx context.Context, c *ccl.Communicator) error{
	func(ctx context.Context, c *ccl.Communicator) error { return c.Barrier(ctx) },
	func(ctx context.Context, c *ccl.Communicator) error { return sum(ctx, c, shortSum) },
	func(ctx context.Context, c *ccl.Communicator) error { return sum(ctx, c, longSum) },
	func(ctx context.Context, c *ccl.Communicator) error {
		return ccl.Broadcast(ctx, c, make([]int32, shortSum), 0)
	},
}

// runArrived lets a rank give up after a call that has succeeded on it: it succeeds on all. The
// others make another call.
func runArrived(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 4)
	arrive := s.drawArrival()
	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) { arrive(c) })
	return r, s.wrap(err, "a rank gives up after a call")
}

// drawArrival draws what each rank does in runArrived.
func (s *scene) drawArrival() func(c *ccl.Communicator) {
	number, by := s.IntN(len(arrivals)), s.IntN(s.ranks)
	how := []way{wayLeaves, wayAborts, wayRefuses}[s.IntN(3)]
	return func(c *ccl.Communicator) {
		ctx := context.Background()
		if err := arrivals[number](ctx, c); err != nil {
			s.alarmf("torn: call %d of rank %d, before rank %d %s: %v", number, c.Rank(), by, how, err)
		}
		switch {
		case c.Rank() != by:
			_ = arrivals[number](ctx, c)
		case how == wayLeaves:
			_ = c.Close()
		case how == wayAborts:
			c.Abort(errGone)
		default:
			_ = refuse(c)
		}
	}
}
