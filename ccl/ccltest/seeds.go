package ccltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/underseeds"
	"github.com/goccl/goccl/test/calls"
)

// Seeds makes calls of a's kernels in many orders of what ranks do. A seed draws 2 to 5 ranks, or
// those of Ranks and Extents, a medium, and a few calls in turn: in place or not, with gaps, at any
// alignment. It checks the rules of Result, Guards and Leave.
//
// With go test -tags interleave it also chooses the order of all steps in which ranks meet, so that
// a kernel that some order breaks fails on every machine. Without the tag the same calls run in the
// order of the machine. With -race a seed also finds memory that ranks share. The flags -goccl.seed
// and -goccl.count, after -args, select the seeds; a failure prints the command that runs its seed
// again.
func Seeds(t *testing.T, a *ccl.Algorithm, opts ...Option) {
	t.Helper()
	s := newSubject(a, opts)
	report(t, s.validate(), valid)
	for _, kernel := range s.targets() {
		name := kernel.coll.String()

		if a.Topologies != nil {
			name = kernel.topology.String() + "/" + name
		}

		t.Run(name, func(t *testing.T) {
			t.Helper() // a failure is at the line of Seeds
			if err := kernel.findSeed(t); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func (s *subject) findSeed(t *testing.T) error {
	return underseeds.Find(t, true, func(seed uint64) error {
		err := s.underSeed(seed)
		if _, cannot := errors.AsType[*skipped](err); cannot {
			return nil // other seeds have other numbers of ranks
		}
		return err
	})
}

// Of a seed.
const (
	seededRanks = 5
	seededCalls = 6
	seededBytes = 1 << 10
)

// underSeed makes the calls of a seed.
func (s *subject) underSeed(seed uint64) error {
	random := rand.New(rand.NewPCG(seed, uint64(s.coll)))
	sizes := append(s.sizes()[1:seededRanks], s.moreSizes()...)
	z := sizes[random.IntN(len(sizes))]
	settings, err := s.at(z).settings(z.ranks, nil)
	if err != nil {
		return &skipped{why: err.Error()}
	}
	g := &group{s: s.at(z), settings: settings, ranks: make([]*rank, z.ranks)}
	jobs, err := g.supported(g.jobs())
	if err != nil {
		return err
	}

	var few []*calls.Call
	for _, i := range random.Perm(len(jobs)) {
		if j := jobs[i]; len(few) < seededCalls && j.Shape().Total <= seededBytes*z.ranks {
			j.Placing, j.Places, j.Shift = calls.Placing(random.IntN(4)), calls.Places(random.IntN(4)), random.IntN(4)
			few = append(few, j)
		}
	}
	w := []medium{poll, park, arena, smallest}[random.IntN(4)]
	eps, err := w.open(z.ranks)
	if err != nil {
		return err
	}

	errs := make([]error, z.ranks)
	var all interleave.WaitGroup

	for r, ep := range eps {
		all.Go(func() {
			underseeds.Label(r)
			c, err := ccl.New(context.Background(), ep, ccl.WithSelector(settings))
			if err == nil {
				err = s.makeAll(c, few)
				_ = c.Close()
			}
			errs[r] = err
		})
	}

	all.Wait()
	return w.in(closest(errs))
}

// closest returns the error that is the closest to the cause of a failure, of the lowest rank.
func closest(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return slices.MaxFunc(errs, func(a, b error) int { return cmp.Compare(weight(a), weight(b)) })
}

// makeAll makes calls one after another, and checks what each leaves.
func (s *subject) makeAll(c *ccl.Communicator, jobs []*calls.Call) error {
	var made []calls.Attempt
	for _, j := range jobs {
		a := calls.NewAttempt(j, c.Rank(), s.rankOrdered)
		err := a.Make(context.Background(), c)
		if err == nil {
			err = errors.Join(a.Right(), a.Fences())
		} else {
			err = s.supposed(err)
		}
		if err != nil {
			return fmt.Errorf("rank %d of %d: %v: %w", c.Rank(), c.Size(), j, err)
		}

		a.Spoil()
		made = append(made, a)
	}

	err := c.Barrier(context.Background())
	for i, a := range made {
		if late := a.Untouched(); late != nil {
			return fmt.Errorf("rank %d of %d: %v: %w", c.Rank(), c.Size(), jobs[i], late)
		}
	}
	return err
}
