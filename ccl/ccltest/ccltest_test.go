package ccltest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
)

// subjectOf makes one kernel an algorithm to check.
func subjectOf(coll ccl.Collective, k *ccl.Kernel) *subject {
	return &subject{
		algorithm: &ccl.Algorithm{
			Name: "test", Doc: "an algorithm of the tests",
			Kernels: map[ccl.Collective]*ccl.Kernel{coll: k},
		},
		coll: coll, timeout: callTimeout, patience: patience, short: true,
	}
}

// on runs the check in all of its worlds, with few ranks, until it fails.
func (c *check) on(s *subject) error {
	for _, w := range c.worlds {
		for _, n := range c.ranks {
			if n > 5 {
				continue
			}
			err := c.run(s, w, n)
			var skip *skipped
			if err != nil && !errors.As(err, &skip) {
				return fmt.Errorf("%s, %d ranks: %w", w.name, n, err)
			}
		}
	}
	return nil
}

func checkNamed(name string) *check {
	return checks[slices.IndexFunc(checks, func(c *check) bool { return c.name == name })]
}

// The kernels that mutants are made of pass: what fails a mutant is its fault.
func TestRightKernelsPass(t *testing.T) {
	for name, s := range map[string]*subject{
		"reduction around a ring":    subjectOf(ccl.CollAllReduce, ringReduceKernel(none)),
		"reduction through a window": subjectOf(ccl.CollAllReduce, foldReduceKernel(none)),
		"gather":                     subjectOf(ccl.CollAllGatherV, ringGatherKernel()),
		"broadcast":                  subjectOf(ccl.CollBroadcast, chainKernel(none)),
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.validate(); err != nil {
				t.Error(err)
			}
			for _, c := range checks {
				if err := c.on(s); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		})
	}
}

// What the suite supports beyond one kernel of one shape: parameters, kinds of
// topology, kernels that do not support everything.
func TestTest(t *testing.T) {
	type params struct {
		Size ccl.ByteSize `yaml:"size"`
	}
	powers := ringReduceKernel(none)
	powers.Supports = func(s ccl.Shape) error {
		if s.Ranks&(s.Ranks-1) != 0 || s.DType == ccl.Uint8 {
			return errors.New("for powers of two, and not for bytes")
		}
		return nil
	}
	broadcast := chainKernel(none)
	broadcast.Run = func(c *ccl.Call) error {
		if p := ccl.ParamsOf[params](c); p.Size != 64 {
			t.Errorf("size is %v", p.Size)
		}
		if k := c.Topology(); k.Kind() != topology.Torus2D || k.Count() != c.Size() {
			t.Errorf("the topology is a %v of %d", k.Kind(), k.Count())
		}
		return chain(none)(c)
	}
	s := &subject{
		algorithm: &ccl.Algorithm{
			Name: "several", Doc: "two kernels for a torus",
			Topologies: []topology.Kind{topology.Torus2D},
			Params:     func() any { return &params{Size: 1 << 20} },
			Kernels: map[ccl.Collective]*ccl.Kernel{
				ccl.CollAllReduce: powers,
				ccl.CollBroadcast: broadcast,
			},
		},
		params: "size: 64", timeout: callTimeout, patience: patience, short: true,
	}
	s.testAll(t)
}

func TestValidateMutants(t *testing.T) {
	undocumented := ringReduceKernel(none)
	undocumented.Doc = ""
	costless := ringReduceKernel(none)
	costless.Cost = nil
	barrier := subjectOf(ccl.CollBarrier, ringReduceKernel(none))
	one := new(struct{})
	shared := subjectOf(ccl.CollAllReduce, ringReduceKernel(none))
	shared.algorithm.Params = func() any { return one }
	unknown := subjectOf(ccl.CollAllReduce, ringReduceKernel(none))
	unknown.params = "depth: 3"
	for want, s := range map[string]*subject{
		"undocumented":       subjectOf(ccl.CollAllReduce, undocumented),
		"declares no Cost":   subjectOf(ccl.CollAllReduce, costless),
		"kernel for barrier": barrier,
		"the same pointer":   shared,
		"has no parameters":  unknown,
	} {
		if err := s.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v instead of %q", err, want)
		}
	}
}

// mutant is a kernel with a fault, and the check whose rule it breaks.
type mutant struct {
	name   string
	check  string
	coll   ccl.Collective
	kernel *ccl.Kernel
	tweak  func(s *subject)
}

// hangs makes a subject's calls and groups give up soon.
func hangs(s *subject) { s.timeout, s.patience = 200*time.Millisecond, time.Second }

func TestMutants(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	mutants := slices.Concat(faultyKernels(), badKernels(stop), moreMutants)
	for _, c := range checks {
		seen := slices.ContainsFunc(mutants, func(m mutant) bool { return m.check == c.name })
		if !seen && c.name != "Cancel" && !(c.name == "Allocs" && raceEnabled) {
			t.Errorf("no mutant shows that %s can fail", c.name)
		}
	}
	for _, m := range mutants {
		t.Run(m.check+"/"+m.name, func(t *testing.T) {
			s := subjectOf(m.coll, m.kernel)
			if m.tweak != nil {
				m.tweak(s)
			}
			start := time.Now()
			err := checkNamed(m.check).on(s)
			if err == nil {
				t.Fatalf("a kernel that %s passes %s", m.name, m.check)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v to see", took)
			}
			if text, _, _ := strings.Cut(err.Error(), "\n"); testing.Verbose() {
				t.Log(text)
			}
		})
	}
}

// faultyKernels are mutants by one wrong line.
func faultyKernels() []mutant {
	reduce, broadcast := ccl.CollAllReduce, ccl.CollBroadcast
	return []mutant{
		{string(wrongBlock), "Result", reduce, ringReduceKernel(wrongBlock), nil},
		{string(oneStep), "Result", reduce, ringReduceKernel(oneStep), nil},
		{string(noFinish), "Result", reduce, ringReduceKernel(noFinish), nil},
		{string(twoFinishes), "Result", reduce, ringReduceKernel(twoFinishes), nil},
		{string(early), "Result", reduce, ringReduceKernel(early), nil},
		{string(rootZero), "Result", broadcast, chainKernel(rootZero), hangs},
		{string(sendFirst), "Rendezvous", reduce, ringReduceKernel(sendFirst), hangs},
		{string(firstPiece), "Rendezvous", reduce, foldReduceKernel(firstPiece), nil},
		{string(ownOutput), "InPlace", reduce, ringReduceKernel(ownOutput), nil},
	}
}

// In a world that does not notice the end of a context Cancel fails; the kernel is
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
	s := subjectOf(ccl.CollAllReduce, foldReduceKernel(none))
	hangs(s)
	if err := cancels(s, deaf, 2); err == nil {
		t.Error("nobody noticed")
	}
}

// A failure says which rule was broken and how to see it again.
func TestFailureText(t *testing.T) {
	got := failure(errors.New("rank 2 got 5"), "it is 4", "TestA/all_reduce/poll+jitter")
	want := `rank 2 got 5
rule: it is 4
again: go test -run '^TestA$/^all_reduce$/^poll\+jitter$'`
	if got != want {
		t.Errorf("%s\ninstead of\n%s", got, want)
	}
}
