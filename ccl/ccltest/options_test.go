package ccltest

import (
	"errors"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// withOptions adds options to a subject.
func withOptions(s *subject, opts ...Option) *subject {
	s.more = newSubject(s.algorithm, opts).more
	return s
}

// failsAt returns the sizes at which a check fails.
func (c *check) failsAt(s *subject, w medium) string {
	var all []string
	for _, z := range c.sizes(s) {
		err := c.run(s.at(z), w, z.ranks)
		if _, skip := errors.AsType[*skipped](err); err != nil && !skip {
			all = append(all, z.String())
		}
	}
	return strings.Join(all, " ")
}

// Ranks reaches what a kernel does on more ranks than the suite's own.
func TestRanks(t *testing.T) {
	many := before(func(c *ccl.Call) error {
		if c.Size() > 16 {
			return errors.New("too many for me")
		}
		return nil
	})
	s := subjectOf(ccl.CollAllReduce, many)
	result := checkNamed("Result")
	if at := result.failsAt(s, park); at != "" {
		t.Errorf("without the option Result fails at %s", at)
	}
	if at := result.failsAt(withOptions(s, Ranks(17, 16, 40)), park); at != "ranks=17 ranks=40" {
		t.Errorf("Result fails at %q", at)
	}
	if n := len(checkNamed("Leave").sizes(s)); n != 3 {
		t.Errorf("Leave has %d sizes", n)
	}
}

// The results of right kernels are exact on any number of ranks. With -short there are fewer calls.
func TestManyRanks(t *testing.T) {
	for name, s := range map[string]*subject{
		"ring":       subjectOf(ccl.CollAllReduce, ringReduceKernel(none)),
		"view":       subjectOf(ccl.CollAllReduce, viewReduceKernel(none)),
		"all-to-all": subjectOf(ccl.CollAllToAll, pairwiseExchange(none)),
		"scan":       ordered(subjectOf(ccl.CollScan, chainScan(none))),
	} {
		s.short = raceEnabled || testing.Short()
		for _, n := range []int{24, 65} {
			if err := results(s, park, n); err != nil {
				t.Errorf("%s on %d ranks: %v", name, n, err)
			}
		}
	}
}

// Inputs are longer than what an algorithm declares, by default too, and a kernel that passes is told what was not
// reached.
func TestReach(t *testing.T) {
	for chunk, want := range map[ccl.ByteSize]string{
		1 << 10: "not reached: more than 33 ranks: with ccltest.Ranks",
		1 << 20: `not reached: inputs longer than chunk, which is 1MiB: without -short and -race, or with ccltest.Params("chunk: 64"); more than 33 ranks: with ccltest.Ranks`,
		1 << 30: `not reached: inputs longer than chunk, which is 1GiB: with ccltest.Params("chunk: 64"); more than 33 ranks: with ccltest.Ranks`,
	} {
		k := chunkChainKernel(none)
		k.Run = func(c *ccl.Call) error {
			if out := c.Out().Bytes(); len(out) > int(chunk) {
				return errors.New("it has room for one chunk")
			}
			return chunkChain(none)(c)
		}
		s := subjectOf(ccl.CollBroadcast, k)
		s.algorithm.Params = func() any { return &chunkParams{Chunk: chunk} }
		if text := s.unreached(); text != want {
			t.Errorf("with chunks of %v: %s", chunk, text)
		}
		s.short = raceEnabled
		isReached := chunk <= mostDeclared && !raceEnabled
		if err := results(s, park, 2); (err != nil) != (isReached || chunk == 1<<10) {
			t.Errorf("with chunks of %v: %v", chunk, err)
		}
	}

	doubling := subjectOf(ccl.CollAllReduce, doublingReduceKernel(none))
	if text := doubling.unreached(); text != "not reached: more than 16 ranks: with ccltest.Ranks" {
		t.Error(text)
	}
}

// An algorithm for many ranks only is tested if Ranks names them.
func TestRanksOfATimidKernel(t *testing.T) {
	k := ringReduceKernel(none)
	k.Supports = func(s ccl.Shape) error {
		if s.Ranks < 20 {
			return errors.New("it is for 20 ranks or more")
		}
		return nil
	}
	s := subjectOf(ccl.CollAllReduce, k)
	if err := s.validate(); err == nil || !strings.Contains(err.Error(), "the option Ranks adds others") {
		t.Errorf("%v", err)
	}
	if err := withOptions(s, Ranks(20)).validate(); err != nil {
		t.Error(err)
	}
}

// Extents reaches what a kernel does in a grid that is higher than wide.
func TestExtents(t *testing.T) {
	wide := before(func(c *ccl.Call) error {
		if g := c.Shape().Topology; g.W() < g.H() {
			return errors.New("it is for wide grids")
		}
		return nil
	})
	s := subjectOf(ccl.CollAllReduce, wide)
	s.algorithm.Topologies = []topology.Kind{topology.Torus2D, topology.Ring1D}
	withOptions(s, Extents(4, 2), Extents(2, 4))
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	torus := s.of(topology.Torus2D)
	if at := checkNamed("Completes").failsAt(torus, park); at != "extents=2x4" {
		t.Errorf("Completes fails at %q", at)
	}
	if n := len(checkNamed("Completes").sizes(s.of(topology.Ring1D))); n != len(checkNamed("Completes").ranks) {
		t.Errorf("a ring has %d sizes", n)
	}
}

// Options that no group can have are refused.
func TestWrongOptions(t *testing.T) {
	grid := subjectOf(ccl.CollAllReduce, ringReduceKernel(none))
	grid.algorithm.Topologies = []topology.Kind{topology.Mesh2DNoWrap}
	for _, test := range []struct {
		s    *subject
		o    Option
		want string
	}{
		{grid, Ranks(4, 1), "the option Ranks has 1; from 2 to 65536 are allowed"},
		{grid, Extents(0, 3), "the option Extents has 0 and 3"},
		{grid, Extents(1, 1), "the option Extents has 1 and 1"},
		{grid, Extents(1<<40, 1<<40), "the option Extents has"},
		{subjectOf(ccl.CollAllReduce, ringReduceKernel(none)), Extents(2, 3), "whose Topologies have extents"},
	} {
		if err := withOptions(test.s, test.o).validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v instead of %q", err, test.want)
		}
	}
}

// The names of cases are those that the options' documentation gives.
func TestSizeNames(t *testing.T) {
	for want, z := range map[string]size{"ranks=24": {ranks: 24}, "extents=2x8": {16, 2, 8}} {
		if z.String() != want {
			t.Errorf("%v instead of %s", z, want)
		}
	}
}

// A kernel that allocates a table with an entry for each rank passes on two ranks, where the compiler
// finds room for it on the stack, and fails on many.
func TestAllocsByRanks(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tables := before(func(c *ccl.Call) error {
		offsets := make([]int, c.Size())
		for r := range offsets {
			offsets[r] = r * c.Rank()
		}
		if offsets[c.Size()-1] < 0 {
			return errors.New("an offset is negative")
		}
		return nil
	})
	allocs := checkNamed("Allocs")
	for _, w := range []medium{park, arena} {
		if at := allocs.failsAt(subjectOf(ccl.CollAllReduce, tables), w); at != "ranks=16" {
			t.Errorf("%s: Allocs fails at %q", w.name, at)
		}
		if at := allocs.failsAt(subjectOf(ccl.CollAllReduce, ringReduceKernel(none)), w); at != "" {
			t.Errorf("%s: without the table Allocs fails at %q", w.name, at)
		}
	}
}
