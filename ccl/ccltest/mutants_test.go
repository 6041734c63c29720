package ccltest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
)

// mutant is a kernel with a fault, and the check whose rule it breaks.
type mutant struct {
	name   string // what it does
	check  string
	coll   ccl.Collective
	kernel *ccl.Kernel
	tweak  func(s *subject)
}

// byLuck are the mutants that a check before theirs may see, since what they do wrong
// depends on timing or on the transport: their own check sees them in any case.
var byLuck = []string{"assumes that the root comes first", string(allParts), string(peersInput)}

// TestMutants proves of each mutant that it fails the check whose rule it breaks,
// and that it fails no check that is run before that one: the first failure that
// its author sees names the broken rule.
func TestMutants(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	mutants := slices.Concat(messageMutants(stop), resultMutants(), orderMutants(), placeMutants(),
		rootedMutants(), costMutants(), failureMutants(stop), stateMutants(stop), racingMutants)
	for _, c := range checks {
		seen := slices.ContainsFunc(mutants, func(m mutant) bool { return m.check == c.name })
		// Cancel is about waits before any kernel runs, see TestCancelSeesDeafWorld.
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
			if err := s.validate(); err != nil {
				t.Fatal(err)
			}
			c, err := firstToFail(s, strings.HasPrefix(m.name, "declares "))
			if c != nil && c.name != m.check && slices.Contains(byLuck, m.name) {
				t.Logf("%s was the first to see it: %v", c.name, err)
				c = checkNamed(m.check)
				err = c.on(s)
			}
			switch {
			case err == nil:
				t.Fatalf("a kernel that %s passes", m.name)
			case c.name != m.check:
				t.Fatalf("%s is the first to see a kernel that %s: %v", c.name, m.name, err)
			}
			text, _, _ := strings.Cut(err.Error(), "\n")
			t.Log(text)
		})
	}
}

// firstToFail runs the checks in their order, and returns the first that fails. It
// leaves out those before Cost for a kernel that runs like a right one: they do not
// ask what it declares.
func firstToFail(s *subject, runsRight bool) (*check, error) {
	for _, c := range checks {
		runsRight = runsRight && c.name != "Cost"
		if runsRight {
			continue
		}
		if err := c.on(s); err != nil {
			return c, err
		}
	}
	return nil, nil
}

// on runs the check in all of its media, with as few ranks as it has, until it fails.
func (c *check) on(s *subject) error {
	for _, w := range c.media {
		for _, n := range c.ranks {
			if n > max(3, slices.Min(c.ranks)) {
				continue
			}
			err := c.run(s, w, n)
			if skip, ok := errors.AsType[*skipped](err); ok {
				if skip.rest {
					return nil
				}
				continue
			}
			if err != nil {
				return fmt.Errorf("%s, %d ranks: %w", w.name, n, err)
			}
		}
	}
	return nil
}

// subjectOf makes one kernel an algorithm to check.
func subjectOf(coll ccl.Collective, k *ccl.Kernel) *subject {
	return &subject{
		algorithm: &ccl.Algorithm{
			Name: "test", Doc: "an algorithm of the tests",
			Kernels: map[ccl.Collective]*ccl.Kernel{coll: k},
		},
		coll: coll, timeout: callTimeout, patience: patience, short: true, made: make(map[string]error),
	}
}

// hangs makes a subject's calls and groups give up soon.
func hangs(s *subject) { s.timeout, s.patience = 200*time.Millisecond, 5*time.Second }

// ordered declares that a subject reduces in rank order.
func ordered(s *subject) *subject {
	s.rankOrdered = true
	return s
}

// chunked gives a subject parameters, with chunks so small that the suite tries
// lengths around them.
func chunked(s *subject) {
	s.algorithm.Params = func() any { return &chunkParams{Chunk: 1 << 20} }
	s.params = "chunk: 64"
}

// The kernels that mutants are made of pass: what fails a mutant is its fault.
func TestRightKernelsPass(t *testing.T) {
	chunks := subjectOf(ccl.CollBroadcast, chunkChainKernel(none))
	chunked(chunks)
	unshared := viewReduceKernel(none)
	unshared.Eager, unshared.AnyRunner = false, false
	for name, s := range map[string]*subject{
		"reduction around a ring":                                subjectOf(ccl.CollAllReduce, ringReduceKernel(none)),
		"reduction by doubling":                                  subjectOf(ccl.CollAllReduce, doublingReduceKernel(none)),
		"reduction through a view":                               subjectOf(ccl.CollAllReduce, viewReduceKernel(none)),
		"reduction through a view that its own rank has to open": subjectOf(ccl.CollAllReduce, unshared),
		"reduction by hand":                                      subjectOf(ccl.CollAllReduce, byHandKernel(inRankOrder, sumOrMin)),
		"gather":                                                 subjectOf(ccl.CollAllGather, ringGatherKernel(none)),
		"broadcast":                                              subjectOf(ccl.CollBroadcast, chainKernel(none)),
		"broadcast in chunks":                                    chunks,
		"broadcast in two parts":                                 subjectOf(ccl.CollBroadcast, inPartsKernel(2, 3, none)),
		"broadcast in three parts":                               subjectOf(ccl.CollBroadcast, inPartsKernel(3, 2, none)),
		"broadcast both ways":                                    subjectOf(ccl.CollBroadcast, twoArmsKernel(none)),
		"reduce":                                                 subjectOf(ccl.CollReduce, chainReduce(none)),
		"reduce-scatter":                                         subjectOf(ccl.CollReduceScatter, pairwiseReduce(none)),
		"gather to a root":                                       subjectOf(ccl.CollGather, linearGather(none)),
		"scatter":                                                subjectOf(ccl.CollScatter, linearScatter(none)),
		"all-to-all":                                             subjectOf(ccl.CollAllToAll, pairwiseExchange(none)),
		"scan":                                                   ordered(subjectOf(ccl.CollScan, chainScan(none))),
		"exclusive scan":                                         ordered(subjectOf(ccl.CollExScan, chainExScan(none))),
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
