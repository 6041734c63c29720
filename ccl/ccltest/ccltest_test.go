package ccltest

import (
	"errors"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
)

// What the suite supports beyond one kernel of one shape: parameters, kinds of
// topology, kernels that do not support everything.
func TestTest(t *testing.T) {
	supports := func(s ccl.Shape) error {
		if s.DType == ccl.Uint8 || s.Ranks != 2 && s.Ranks != 4 {
			return errors.New("it is for two or four ranks, and not for bytes")
		}
		return nil
	}
	reduce, broadcast := ringReduceKernel(none), chunkChainKernel(none)
	reduce.Supports, broadcast.Supports = supports, supports
	broadcast.Run = func(c *ccl.Call) error {
		if p := ccl.ParamsOf[chunkParams](c); p.Chunk != 64 {
			t.Errorf("chunk is %v", p.Chunk)
		}
		if k := c.Shape().Topology; k.Kind() != topology.Torus2D || k.Count() != c.Size() {
			t.Errorf("the topology is a %v of %d", k.Kind(), k.Count())
		}
		return chunkChain(none)(c)
	}
	Test(t, &ccl.Algorithm{
		Name: "several", Doc: "two kernels for a torus",
		Topologies: []topology.Kind{topology.Torus2D},
		Params:     func() any { return &chunkParams{Chunk: 1 << 20} },
		Kernels: map[ccl.Collective]*ccl.Kernel{
			ccl.CollAllReduce: reduce,
			ccl.CollBroadcast: broadcast,
		},
	}, Params("chunk: 64"))
}

// The names of media and checks are part of the commands that failures print.
func TestNamesAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range checks {
		if seen[c.name] {
			t.Errorf("two checks are called %s", c.name)
		}
		seen[c.name] = true
		names := make(map[string]bool)
		for _, w := range c.media {
			if names[w.name] {
				t.Errorf("%s has two media called %s", c.name, w.name)
			}
			names[w.name] = true
		}
	}
}

func TestValidateMutants(t *testing.T) {
	undocumented := ringReduceKernel(none)
	undocumented.Doc = ""
	costless := ringReduceKernel(none)
	costless.Cost = nil
	timid := ringReduceKernel(none)
	timid.Supports = func(ccl.Shape) error { return errors.New("rather not") }
	barrier := subjectOf(ccl.CollBarrier, ringReduceKernel(none))
	one := new(struct{})
	shared := subjectOf(ccl.CollAllReduce, ringReduceKernel(none))
	shared.algorithm.Params = func() any { return one }
	unknown := subjectOf(ccl.CollAllReduce, ringReduceKernel(none))
	unknown.params = "depth: 3"
	for want, s := range map[string]*subject{
		"undocumented":       subjectOf(ccl.CollAllReduce, undocumented),
		"declares no Cost":   subjectOf(ccl.CollAllReduce, costless),
		"rather not":         subjectOf(ccl.CollAllReduce, timid),
		"kernel for barrier": barrier,
		"the same pointer":   shared,
		"has no parameters":  unknown,
	} {
		if err := s.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v instead of %q", err, want)
		}
	}
}

// In a medium that does not notice the end of a context Cancel fails; the kernel is
// innocent.
func TestCancelSeesDeafWorld(t *testing.T) {
	deaf := poll
	deaf.open = func(ranks int) ([]transport.Endpoint, error) {
		eps, err := poll.open(ranks)
		for i, ep := range eps {
			eps[i] = deafEndpoint{ep}
		}
		return eps, err
	}
	s := subjectOf(ccl.CollAllReduce, viewReduceKernel(none))
	hangs(s)
	if err := cancels(s, deaf, 2); err == nil {
		t.Error("it was not noticed")
	}
}
