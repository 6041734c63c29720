//go:build interleave && linux

package seeds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport/shm"
)

// runProcessScene runs the part of each rank in a simulated process.
func (s *scene) runProcesses(t *testing.T, seed uint64, o interleave.Options, part func(c *ccl.Communicator)) (interleave.Result, error) {
	simulateProcesses(t, seed)
	shm.Simulate(directory, func(ranks int) shm.Geometry {
		g := shm.SmallestGeometry(ranks)
		g.Slot, g.Slots = 128, 1+int(seed/4%2)
		g.Pool = 2 * ranks * ranks * g.Slots * (g.Slot + 1024)
		g.Flight = flight.PartBytes(ranks)
		return g
	})
	settings, err := processesConfig.Resolve(config.Request{Ranks: s.ranks, Timeout: callTimeout})
	if err != nil {
		return interleave.Result{}, err
	}

	s.processes = make([]*process, s.ranks)
	r := interleave.Run(t, o, func() {
		s.ended = make(chan struct{})
		for rank := range s.processes {
			q := &process{label: label(rank), ended: make(chan struct{})}
			s.processes[rank] = q
			interleave.SetLabel(q.label)
			interleave.Go(func() {
				defer q.end(false)
				interleave.SetLabel(q.label)
				ep, err := shm.Join(context.Background(), shm.Job{Name: "corner", Rank: rank, Size: s.ranks})
				var c *ccl.Communicator
				if err == nil {
					c, err = ccl.New(context.Background(), ep, ccl.WithSelector(settings))
				}
				if err != nil {
					s.alarmf("rank %d: %v", rank, err)
					return
				}
				part(c)
				_ = c.Close()
			})
		}
		interleave.SetLabel("")
		for _, q := range s.processes {
			interleave.Receive(q.ended)
		}
	})
	leaks := shm.EndSimulation(func(label string) bool {
		return r.Finding != nil || slices.ContainsFunc(s.processes, func(q *process) bool { return q.label == label && q.isDead })
	})
	_, removed := removeFiles()
	return r, errors.Join(append(s.alarms, leaks, removed)...)
}

// kill kills the process of a rank. The system releases its locks some time later.
func (s *scene) kill(rank int, bury time.Duration) {
	q := s.processes[rank]
	if q.isEnded {
		return
	}
	interleave.Kill(q.label)
	interleave.Sleep(bury)
	shm.Bury(q.label)
	q.end(true)
}

// runPieces runs calls whose inputs travel in pieces. A rank gives up or dies, or none does.
func runPieces(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 3)
	s.useProcessors()
	const rounds = 3
	ways := []way{wayNothing, wayNothing, wayCancels, wayAborts, wayDies}
	how, by, moment := ways[s.IntN(len(ways))], s.IntN(s.ranks), s.drawMoment()
	n := 36*rounds - s.IntN(40)
	bury := time.Duration(s.IntN(2)) * 100 * time.Millisecond
	if how == wayNothing {
		o.Patience = 30 * time.Millisecond
	}

	errs := make([]error, s.ranks)
	var made interleave.Int64
	r, err := s.runProcesses(t, seed, o, func(c *ccl.Communicator) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var beside interleave.WaitGroup
		if c.Rank() == by && how != wayNothing {
			beside.Go(func() {
				pause(moment)
				switch how {
				case wayCancels:
					cancel()
				case wayAborts:
					c.Abort(errGone)
				case wayDies:
					interleave.SetLabel("") // whoever kills it lives on
					s.kill(by, bury)
				}
			})
		}
		start := time.Now()
		errs[c.Rank()] = sum(ctx, c, n, ccl.WithAlgorithm("direct"))
		if took := time.Since(start); took > callTimeout/2 {
			s.alarmf("rank %d has waited for %v: %v", c.Rank(), took, errs[c.Rank()])
		}
		beside.Wait()
		if how == wayNothing { // whoever leaves wakes the others
			if made.Add(1) == int64(s.ranks) {
				s.end()
			}
			s.hold()
		}
	})
	isFailed := func(err error) bool { return err != nil }
	switch failed := len(errs) - len(slices.DeleteFunc(slices.Clone(errs), isFailed)); {
	case how == wayNothing && failed > 0:
		err = errors.Join(err, fmt.Errorf("nothing went wrong: the errors of ranks are %v", errs))
	case how != wayDies && failed > 0 && failed < len(errs):
		err = errors.Join(err, fmt.Errorf("torn: the errors of ranks are %v", errs))
	}
	return r, s.wrap(err, "processes, rank %d %s", by, how)
}

const wayDies way = "dies"

// useProcessors draws whether each process has a processor.
func (s *scene) useProcessors() { interleave.SetProcessors([]int{1, 8}[s.IntN(2)]) }

// runParts runs messages that travel in parts, of which some are under way when a process leaves or
// dies.
func runParts(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 3)
	s.useProcessors()
	l, moment := s.drawLetters(2, []int{64, 100}[s.IntN(2)]), s.drawMoment()
	l.copied, l.leaves = true, true
	isLast := s.IntN(2) == 0 // rank 0 closes its group when its first message is on its way
	o.Patience = 500 * time.Millisecond
	if s.ranks == 3 {
		return s.runAnyBesideDeath(t, seed, o, moment)
	}
	r, err := s.runProcesses(t, seed, o, func(c *ccl.Communicator) {
		switch {
		case c.Rank() == 1:
			l.receive(c, 0)
		case isLast:
			l.sent[0] = ccl.Send(context.Background(), c, letter(0, l.lengths[0]), 1, 0)
			l.sent[1] = errGone
			_ = c.Close()
		default:
			l.send(context.Background(), c, 1, func() {
				pause(moment)
				_ = c.Close()
			})
		}
	})
	if isLast && err == nil && l.sent[0] == nil && l.got[0] != nil {
		err = fmt.Errorf("rank 0 has sent a message before it left, and rank 1 does not get it: %w", l.got[0])
	}
	return r, s.wrap(errors.Join(err, l.check()), "messages of %d, one %v: rank 0 sends to rank 1", l.lengths, isLast)
}

// runAnyBesideDeath lets rank 2 receive from any rank, while rank 1 sends and rank 0 dies.
func (s *scene) runAnyBesideDeath(t *testing.T, seed uint64, o interleave.Options, moment int) (interleave.Result, error) {
	const length = 100
	r, err := s.runProcesses(t, seed, o, func(c *ccl.Communicator) {
		ctx := context.Background()
		switch c.Rank() {
		case 0:
			interleave.Go(func() {
				interleave.SetLabel("")
				s.kill(0, 0)
			})
			s.hold()
		case 1:
			interleave.Sleep(time.Duration(moment) * 100 * time.Microsecond)
			_ = ccl.Send(ctx, c, letter(0, length), 2, 0, ccl.WithTimeout(time.Second/4))
		default:
			x := make([]int32, length)
			source, err := ccl.Recv(ctx, c, x, ccl.AnySource, 0)
			if err == nil && (source != 1 || !slices.Equal(x, letter(0, length))) {
				s.alarmf("rank 2 has received from rank %d: %v", source, x)
			}
			if err != nil && lostIn(err) != 0 {
				s.alarmf("rank 2, beside the death of rank 0: %v", err)
			}
		}
	})
	return r, s.wrap(err, "rank 0 dies, rank 1 sends, rank 2 receives from any")
}

// runArrivedProcesses is runArrived between processes.
func runArrivedProcesses(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 4)
	s.useProcessors()
	arrive := s.drawArrival()
	r, err := s.runProcesses(t, seed, o, arrive)
	return r, s.wrap(err, "processes")
}

// runRecorded closes a group while another goroutine of the rank sends or receives: nothing is
// recorded in memory that was given back.
func runRecorded(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 2)
	s.useProcessors()
	by, moment := s.IntN(2), s.drawMoment()
	o.Patience = 500 * time.Millisecond
	r, err := s.runProcesses(t, seed, o, func(c *ccl.Communicator) {
		var beside interleave.WaitGroup
		if c.Rank() == by {
			beside.Go(func() {
				pause(moment)
				_ = c.Close()
			})
		}
		peer := 1 - c.Rank()
		for k := range 2 {
			if c.Rank() == k {
				_ = ccl.Send(context.Background(), c, letter(k, 3), peer, k)
			} else {
				_, _ = ccl.Recv(context.Background(), c, make([]int32, 3), peer, k)
			}
		}
		beside.Wait()
	})
	return r, s.wrap(err, "rank %d closes its group", by)
}
