package ccltest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/goccl/goccl/ccl"
)

// Fuzz makes single calls of a's kernels of which the fuzzer chooses everything:
// the kernel, the world and its delays, 1 to 16 ranks, type, operation, root, counts,
// and where the buffers lie. It holds them to the rules of Completes, Messages,
// Supports, Result, Guards, SameBits and Cost; a failure names the one that was broken.
// Calls that the kernel does not support, and numbers of ranks that the topology does
// not take, are skipped: there is nothing to see.
//
// Without -fuzz it is a plain test of a few dozen calls for each kernel.
func Fuzz(f *testing.F, a *ccl.Algorithm, opts ...Option) {
	s := newSubject(a, opts)
	if err := s.validate(); err != nil {
		f.Fatal(failure(err, valid, f.Name()))
	}
	targets := s.targets()
	for _, in := range seeds(len(targets)) {
		f.Add(in.kernel, in.world, in.ranks, in.dtype, in.op, in.root, in.layout, in.count, in.counts, in.delays)
	}
	f.Fuzz(func(t *testing.T, kernel, world, ranks, dtype, op, root, layout uint8, count uint16, counts []byte, delays uint64) {
		in := input{kernel, world, ranks, dtype, op, root, layout, count, counts, delays}
		broken, err := in.try(targets)
		if skip, ok := errors.AsType[*skipped](err); ok {
			t.Skip(skip.why)
		}
		report(t, err, broken)
	})
}

// targets returns a subject for each kernel in each kind of topology that it is for.
func (s *subject) targets() []*subject {
	if s.algorithm.Topologies == nil {
		return s.kernels()
	}
	var all []*subject
	for _, kind := range s.algorithm.Topologies {
		all = append(all, s.of(kind).kernels()...)
	}
	return all
}

// input is what the fuzzer chooses. Each of the numbers stands for one of the choices
// that there are, whatever its value.
type input struct {
	kernel, world, ranks, dtype, op, root uint8
	// layout stands for placing, places and shift, two bits each, and from 128 on
	// for inputs that round.
	layout uint8
	// count is the length of a vector. counts are the lengths of an all-gather's
	// inputs; those of ranks for which there is no byte have their share of count.
	count  uint16
	counts []byte
	delays uint64 // their seed; 0: none
}

// seeds returns inputs for so many kernels that differ from each other in everything.
func seeds(kernels int) []input {
	var all []input
	for kernel := range kernels {
		for i := range 32 {
			h := mix(uint64(i))
			in := input{
				kernel: uint8(kernel), world: uint8(i), ranks: uint8(i), dtype: uint8(i * 3), op: uint8(h), root: uint8(h >> 8),
				layout: uint8(h >> 16), count: uint16(h >> 24 % (8 << (i % 8))),
			}
			if i >= mostRanks {
				in.ranks = uint8(h >> 56)
			}
			if i%3 == 0 {
				in.counts = []byte{0, 1, uint8(h >> 40), 0, uint8(h >> 48)}
			}
			if i/4%2 > 0 {
				in.delays = h
			}
			all = append(all, in)
		}
	}
	return all
}

// choose returns the choice that x stands for.
func choose[T any](choices []T, x uint8) T { return choices[int(x)%len(choices)] }

// decode returns what the input stands for.
func (in *input) decode(targets []*subject) (s *subject, w world, n int, j *job) {
	s = choose(targets, in.kernel)
	w = choose([]world{poll, park, arena, smallest}, in.world)
	if in.delays != 0 {
		w = jittered(w)[0]
	}
	n = 1 + int(in.ranks)%mostRanks
	j = &job{
		coll: s.coll, dtype: choose(dtypes, in.dtype), op: choose(ccl.Ops(), in.op), root: int(in.root) % n,
		placing: placing(in.layout % 4), places: places(in.layout / 4 % 4), shift: int(in.layout / 16 % 4),
		counts: make([]int, n),
	}
	j.count = int(in.count) % (1 + w.brief()/j.dtype.Size())
	for r := range j.counts {
		j.counts[r] = j.count / n
		if r < len(in.counts) {
			j.counts[r] = int(in.counts[r])
		}
	}
	if s.coll == ccl.CollAllReduce {
		j.count = max(j.count, 1)
		if in.layout >= 128 {
			j.numbers = peculiar(j.dtype, j.op)
		}
	}
	return s, w, n, j
}

// peculiar returns the inputs of a reduction that are not exact, where there are any.
func peculiar(d ccl.DType, op ccl.Op) numbers {
	switch {
	case d != ccl.Float32 && d != ccl.Float64:
		return exact
	case op == ccl.Min || op == ccl.Max:
		return odd
	}
	return rough
}

// try makes the call, and returns the check whose rule it broke, and how.
func (in *input) try(targets []*subject) (broken *check, err error) {
	s, w, n, j := in.decode(targets)
	if _, err := s.settings(n, nil); err != nil {
		return nil, &skipped{why: err.Error()}
	}
	broken = valid // until the ranks are connected
	breaks := func(name string, err error) error {
		broken = checkNamed(name)
		return w.in(fmt.Errorf("%s, %d ranks: %v: %w", w.name, n, j, err))
	}
	m := newMeter(s, n)
	err = s.with(w, n, probe{seed: in.delays, observe: m.see}, func(g *group) error {
		if _, err := g.supported([]*job{j}); err != nil {
			return err
		}
		attempts := make([]attempt, n)
		err := g.each(func(r *rank) error {
			attempts[r.me] = r.attempt(j)
			return attempts[r.me].call(context.Background())
		})
		if err != nil {
			return breaks(blame(err), s.supposed(err))
		}
		o := outcome{job: j}
		for r, a := range attempts {
			if err := a.right(); err != nil {
				return breaks("Result", fmt.Errorf("rank %d: %w", r, err))
			}
			if err := a.fences(); err != nil {
				return breaks("Guards", fmt.Errorf("rank %d: %w", r, err))
			}
			o.ranks = append(o.ranks, a.bits())
		}
		if s.coll == ccl.CollAllReduce {
			if err := compare([]outcome{o}, []outcome{o}); err != nil {
				return breaks("SameBits", err)
			}
		}
		if n > 1 && j.shape(g).Total > 0 {
			if err := m.compare(); err != nil {
				return breaks("Cost", err)
			}
		}
		return nil
	})
	return broken, err
}
