package ccltest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// Option is an option of Test.
type Option struct {
	params      string
	rankOrdered bool
}

// Params gives the algorithm parameters other than its defaults, written as
// between the braces of an entry's params in ccl.yaml: "chunk: 64, depth: 2".
// Small ones bring its switching points within reach of the suite: sizes around
// each parameter of type ccl.ByteSize, and around that times the number of ranks,
// are among those tried.
func Params(fields string) Option { return Option{params: fields} }

// RankOrdered declares that reductions give the bits of the sequential fold in
// rank order, ((x0 op x1) op x2) ..., for floats too. Without it a reduction may
// order its operations as it likes, the same on all ranks and in all runs.
func RankOrdered() Option { return Option{rankOrdered: true} }

// A call that waits longer than callTimeout has hung: nothing that the suite does
// comes near it, also on a loaded machine. A group in which no call ends for
// patience hangs outside of its verbs.
const (
	callTimeout = 5 * time.Second
	patience    = time.Minute
)

// Test runs all checks on all kernels of a, as subtests called
// collective/Check/world/ranks=R; below a topology's name first where a is for
// certain kinds. The algorithm does not have to be registered.
func Test(t *testing.T, a *ccl.Algorithm, opts ...Option) {
	s := &subject{algorithm: a, timeout: callTimeout, patience: patience, short: testing.Short() || raceEnabled}
	for _, o := range opts {
		s.rankOrdered = s.rankOrdered || o.rankOrdered
		if o.params != "" {
			s.params = o.params
		}
	}
	s.testAll(t)
}

func (s *subject) testAll(t *testing.T) {
	a := s.algorithm
	if !t.Run("Validate", func(t *testing.T) { report(t, s.validate(), validRule) }) {
		return
	}
	if a.Topologies == nil {
		s.testKernels(t)
	}
	for _, kind := range a.Topologies {
		t.Run(kind.String(), func(t *testing.T) { s.of(kind).testKernels(t) })
	}
}

func (s subject) of(kind topology.Kind) *subject {
	s.topology = kind
	return &s
}

func (s *subject) testKernels(t *testing.T) {
	for _, coll := range ccl.Collectives() {
		if s.algorithm.Kernels[coll] == nil {
			continue
		}
		kernel := *s
		kernel.coll = coll
		t.Run(coll.String(), func(t *testing.T) {
			for _, c := range checks {
				hung := false
				t.Run(c.name, func(t *testing.T) { hung = kernel.test(t, c) })
				if hung {
					t.Log("the kernel hangs; its other checks are left out")
					return
				}
			}
		})
	}
}

// test runs c in all worlds until it fails, and reports whether it did because
// the kernel hangs.
func (s *subject) test(t *testing.T, c *check) (hung bool) {
	for _, w := range c.worlds {
		ok := t.Run(w.name, func(t *testing.T) {
			for _, n := range c.ranks {
				ok := t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
					err := c.run(s, w, n)
					var skip *skipped
					if errors.As(err, &skip) {
						t.Log(skip.why)
						return
					}
					_, timeout := errors.AsType[*ccl.TimeoutError](err)
					hung = timeout || errors.Is(err, errHangs)
					report(t, err, c.rule)
				})
				if !ok {
					return
				}
			}
		})
		if !ok {
			return hung
		}
	}
	return false
}

// report fails t if err is not nil.
func report(t *testing.T, err error, rule string) {
	t.Helper()
	if err != nil {
		t.Error(failure(err, rule, t.Name()))
	}
}

// failure says how the test called name failed, which rule was broken, and how to
// see it again.
func failure(err error, rule, name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return fmt.Sprintf("%v\nrule: %s\nagain: go test -run '%s'", err, rule, strings.Join(parts, "/"))
}

// skipped is returned by a check that does not apply, and says so.
type skipped struct{ why string }

func (e *skipped) Error() string { return e.why }

// check is one rule and how to see whether a kernel keeps it: run returns how n
// ranks in world w broke it.
type check struct {
	name   string
	worlds []world
	ranks  []int
	run    func(s *subject, w world, n int) error
	rule   string
}

const validRule = "an algorithm has a name, documentation, valid default parameters, and kernels that are documented and declare their Cost"

var checks = []*check{
	{"Result", []world{poll, park, arena}, []int{1, 2, 3, 4, 5, 7, 8, 11, 16}, results,
		"every rank gets the result of the sequential definition, whatever the type, operation, size, root and number of ranks (C21, C23)"},
	{"Rendezvous", []world{smallest}, []int{2, 3, 4, 5, 7, 8, 11, 16}, results,
		"a kernel does not rely on messages being buffered nor on a window showing all of the inputs at once: no cycle of ranks sends before it receives (C16)"},
	{"Guards", []world{poll, park, arena, smallest}, []int{2, 3, 5, 8}, guards,
		"a kernel writes to its output and nowhere else: not to inputs, not around buffers, which are aligned to their elements and no more, and not to the gaps of an all-gather, whose places may be in any order (S0.3, C14, C15)"},
	{"InPlace", []world{poll, park, arena, smallest}, []int{2, 3, 4, 7}, inPlace,
		"the result is the same whether all ranks work in place, none, or some (C25)"},
	{"SameBits", []world{everywhere}, []int{2, 3, 5, 11}, sameBits,
		"the result is the same bits on all ranks, in all runs and worlds, in place or not, whatever the timing (S0.15, S2.13, C21)"},
	{"Jitter", jittered(poll, park, arena, smallest), []int{2, 3, 5, 8}, jitter,
		"the result does not depend on timing (S1.7)"},
	{"Supports", []world{poll, park, smallest}, []int{2, 3}, supports,
		"a shape or operation that a kernel does not support is refused with ErrNotImplemented on all ranks before anything moves, and the group lives on (S4.13, C2)"},
	{"Cost", []world{poll, park, arena, smallest}, []int{2, 3, 4, 7, 8}, costs,
		"Cost declares exactly the steps and bytes that the kernel takes"},
	{"Cancel", []world{poll, park, smallest}, []int{2, 3}, cancels,
		"a call whose context has ended is refused; a wait that is cancelled or times out ends the call on all ranks, with an error that names who gave up or who is missing (C17, C18, S2.23)"},
	{"Leave", append(jittered(poll, park), poll, park, smallest), []int{2, 3, 5}, leaves,
		"when a rank aborts, leaves or is cancelled, at whatever step, every other rank returns the right result or an error that names that rank, and from then on nobody touches its buffers (S1.12, S1.19)"},
	{"Concurrent", []world{poll, park, arena}, []int{2, 4}, concurrent,
		"calls of different groups do not disturb each other: a kernel keeps no state outside of its Call"},
	{"Allocs", []world{poll, park, arena}, []int{3}, allocations,
		"a call of a kind that was made before allocates nothing (S0.2)"},
	{"Leaks", []world{poll, park, arena}, []int{3}, leaks,
		"when a group is closed nothing of it is left running"},
}

// subject is a kernel under test.
type subject struct {
	algorithm   *ccl.Algorithm
	coll        ccl.Collective
	params      string // fields for ccl.yaml
	rankOrdered bool
	topology    topology.Kind
	timeout     time.Duration // of calls
	patience    time.Duration // with groups
	short       bool          // fewer cases
}

func (s *subject) kernel() *ccl.Kernel { return s.algorithm.Kernels[s.coll] }

func (s *subject) validate() error {
	if err := s.algorithm.Validate(); err != nil {
		return err
	}
	for coll := range s.algorithm.Kernels {
		one := *s
		one.coll = coll
		for _, kind := range s.algorithm.Topologies {
			one.topology = kind
			if _, err := one.settings(4, nil); err != nil {
				return err
			}
		}
		if _, err := one.settings(4, nil); s.algorithm.Topologies == nil && err != nil {
			return err
		}
	}
	if p := s.algorithm.Params; p != nil && p() == p() {
		return errors.New("Params returns the same pointer twice; every entry needs its own")
	}
	return nil
}

// settings returns the configuration of a group of n ranks in which the kernel
// does its collective. observe, unless nil, is called after each of its runs.
func (s *subject) settings(n int, observe func(*ccl.Call)) (*ccl.Settings, error) {
	kernel := *s.kernel()
	if observe != nil {
		kernel.Run = func(c *ccl.Call) error {
			err := s.kernel().Run(c)
			observe(c)
			return err
		}
	}
	only := *s.algorithm
	only.Kernels = map[ccl.Collective]*ccl.Kernel{s.coll: &kernel}

	params := ""
	if s.params != "" {
		params = ", params: {" + s.params + "}"
	}
	extents := ""
	if s.topology != topology.Ring1D {
		h := 1
		for d := 2; d*d <= n; d++ {
			if n%d == 0 {
				h = d
			}
		}
		extents = fmt.Sprintf(", count: %d, w: %d, h: %d", n, n/h, h)
	}
	text := fmt.Sprintf(`version: 1
defaults: {algorithm: subject, timeout: %v}
algorithms: {subject: {module: %q%s}}
topology: {kind: %v%s}
`, s.timeout, only.Name, params, s.topology, extents)
	config, err := ccl.ParseConfig("ccltest", []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w\nin:\n%s", err, text)
	}
	return config.Resolve(ccl.Request{Registry: ccl.NewRegistry(&only), Ranks: n})
}
