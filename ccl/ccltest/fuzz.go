package ccltest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
)

// Fuzz makes single calls of a's kernels. The fuzzer chooses the kernel, the medium and its delays,
// 1 to 16 ranks or those of Ranks and Extents, type, operation, root, counts, and the positions of
// the buffers. Fuzz checks the rules of Completes, Messages, Supports, Result, Guards, SameBits and
// Cost; a failure names the broken one. It skips calls that the kernel does not support, and
// numbers of ranks that the topology does not allow.
//
// Without -fuzz it is a plain test of a few dozen calls for each kernel. Once a kernel has hung in
// one of them the test has failed, and its other calls are skipped: each would last as long as the
// timeout.
func Fuzz(f *testing.F, a *ccl.Algorithm, opts ...Option) { newSubject(a, opts).fuzz(f) }

func (s *subject) fuzz(f *testing.F) {
	if err := s.validate(); err != nil {
		f.Fatal(failure(err, valid, f.Name()))
	}
	targets := s.targets()
	for _, in := range seeds(len(targets)) {
		f.Add(in.kernel, in.medium, in.ranks, in.dtype, in.op, in.root, in.layout, in.count, in.counts, in.delays)
	}

	hung := map[*subject]bool{}
	f.Fuzz(func(t *testing.T, kernel, medium, ranks, dtype, op, root, layout uint8, count uint16, counts []byte, delays uint64) {
		in := input{kernel, medium, ranks, dtype, op, root, layout, count, counts, delays}
		target := choose(targets, kernel)
		if !fuzzing() && hung[target] {
			t.Skipf("the kernel for %v has hung, and this call would last %v", target.coll, target.timeout)
		}
		broken, err := in.try(targets)
		hung[target] = hung[target] || stuck(err)

		if skip, ok := errors.AsType[*skipped](err); ok {
			t.Skip(skip.why)
		}
		report(t, err, broken)
	})
}

// fuzzing reports whether the fuzzer chooses inputs, and not only the seeds are tried. The fuzzer
// repeats an input that fails, to make it smaller.
func fuzzing() bool {
	pattern := flag.Lookup("test.fuzz")
	return pattern != nil && pattern.Value.String() != ""
}

// targets returns a subject for each kernel in each kind of topology that it supports.
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

// input is the fuzzer's choice. Every value of each number stands for one of the options.
type input struct {
	kernel, medium, ranks, dtype, op, root uint8
	// layout encodes placing, places and shift, in two bits each; from 128 on inputs round.
	layout uint8
	// count is the length of a vector, or of all blocks together except those whose length
	// is in counts.
	count  uint16
	counts []byte
	delays uint64 // seed of the delays; 0: none
}

// seeds returns the first inputs for a number of kernels, which differ in everything.
func seeds(kernels int) []input {
	var all []input
	for kernel := range kernels {
		for i := range 32 {
			h := calls.Mix(uint64(i))
			in := input{
				kernel: uint8(kernel), medium: uint8(i), ranks: uint8(i), dtype: uint8(i * 7), op: uint8(h), root: uint8(h >> 8),
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

// choose returns the option that x stands for.
func choose[T any](choices []T, x uint8) T { return choices[int(x)%len(choices)] }

// decode returns the call that the input stands for.
func (in *input) decode(targets []*subject) (s *subject, w medium, n int, j *calls.Call) {
	s = choose(targets, in.kernel)
	w = choose([]medium{poll, park, arena, smallest}, in.medium)
	if in.delays != 0 {
		w = jittered(w)[0]
	}

	z := choose(s.sizes(), in.ranks)
	s, n = s.at(z), z.ranks
	t := choose(calls.Kinds, in.dtype)
	g := &group{s: s, ranks: make([]*rank, n)}
	count := int(in.count) % (1 + w.brief()/t.DType.Size())
	if s.coll.Traits().Reduces {
		count = max(count, 1)
	}

	j = g.newCall(t.DType, choose(t.OpsFor(g.s.coll), in.op), count, int(in.root))
	j.Placing, j.Places, j.Shift = calls.Placing(in.layout%4), calls.Places(in.layout/4%4), int(in.layout/16%4)
	for r, n := range in.counts {
		switch {
		case r < len(j.Counts):
			j.Counts[r] = int(n)
		case n > 0 && r < len(j.Matrix)*len(j.Matrix):
			j.Matrix[r/len(j.Matrix)][r%len(j.Matrix)] = int(n)
		}
	}

	if j.Coll == ccl.CollReduceScatter && j.Shape().Bytes == 0 {
		j.Counts[j.Root] = 1
	}
	if s.coll.Traits().Reduces && in.layout >= 128 {
		j.Numbers = peculiar(&t, j.Op)
	}
	return s, w, n, j
}

// peculiar returns the kind of inexact inputs of a reduction, or exact if it has none.
func peculiar(t *calls.Kind, op ccl.Op) calls.Numbers {
	switch {
	case !t.IsFloat:
		return calls.Exact
	case op == ccl.Min || op == ccl.Max:
		return calls.Odd
	}
	return calls.Rough
}

// try makes the call and returns the check whose rule it broke, with the error.
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
		if _, err := g.supported([]*calls.Call{j}); err != nil {
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

		j.Results = make([][]uint64, n)
		for r, a := range attempts {
			if err := a.Right(); err != nil {
				return breaks("Result", g.charted(fmt.Errorf("rank %d: %w", r, err)))
			}
			if err := a.Fences(); err != nil {
				return breaks("Guards", g.charted(fmt.Errorf("rank %d: %w", r, err)))
			}
			_ = a.Note()
		}

		if err := compare([]*calls.Call{j}, []*calls.Call{j}); err != nil {
			return breaks("SameBits", g.charted(err))
		}
		if n > 1 && g.shapeOf(j).Total > 0 && j.EqualBlocks() && s.declares(w) {
			if err := m.compare(); err != nil {
				return breaks("Cost", g.charted(err))
			}
		}
		return nil
	})
	return broken, err
}
