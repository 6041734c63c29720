package ccltest

import (
	"errors"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
)

// Option is an option of Test, of Fuzz and of Seeds.
type Option struct {
	params      string
	rankOrdered bool
	sizes       []size
}

// Params sets parameters of the algorithm, written as between the braces of an entry's
// params in ccl.yaml: "chunk: 64, depth: 2". Small ones bring its switching points within
// reach of the suite, which tries sizes around each parameter of type ccl.ByteSize, and
// around its product with the number of ranks.
func Params(fields string) Option { return Option{params: fields} }

// RankOrdered declares that reductions give the bits of the sequential reduction in rank
// order, also for floats; 16-bit floats may be rounded at every step, or once at the end.
// Without it a reduction may use any order of operations, but always the same one.
func RankOrdered() Option { return Option{rankOrdered: true} }

// Ranks adds groups of these sizes, each of 2 ranks or more, to the checks: for algorithms that do
// something else on more ranks than the suite's 16, or on other numbers of them. Cancel, Leave,
// State and Leaks keep their few ranks.
func Ranks(counts ...int) Option {
	var o Option
	for _, n := range counts {
		o.sizes = append(o.sizes, size{ranks: n})
	}
	return o
}

// Extents adds a group of w times h ranks to the checks, as Ranks does, in a topology w wide and h
// high: "extents=WxH" in the names of tests. The suite's own groups are as close to a square as
// their number of ranks allows. It is for algorithms with Topologies of that kind, and may be given
// several times.
func Extents(w, h int) Option { return Option{sizes: []size{{w * h, w, h}}} }

// A call that waits longer than callTimeout has hung: no call of the suite comes near it,
// even on a loaded machine. A group in which no call ends within patience, when every wait
// would have ended, hangs outside of its verbs.
const (
	callTimeout = 5 * time.Second
	patience    = 2 * callTimeout
)

// Test runs all checks on all kernels of a, as subtests named collective/Check/medium/ranks=R (or
// extents=WxH), and below the name of a topology if a supports only certain kinds. The algorithm
// need not be registered.
func Test(t *testing.T, a *ccl.Algorithm, opts ...Option) { newSubject(a, opts).test(t) }

func (s *subject) test(t *testing.T) {
	if !t.Run("Validate", func(t *testing.T) { report(t, s.validate(), valid) }) {
		return
	}
	if s.algorithm.Topologies == nil {
		s.testKernels(t)
	}
	for _, kind := range s.algorithm.Topologies {
		t.Run(kind.String(), func(t *testing.T) { s.of(kind).testKernels(t) })
	}
}

func (s *subject) testKernels(t *testing.T) {
	for _, kernel := range s.kernels() {
		t.Run(kernel.coll.String(), func(t *testing.T) {
			var failed []string
			for _, c := range checks {
				passed, goOn := kernel.check(t, c)
				if !passed {
					failed = append(failed, c.name)
				}

				if !goOn {
					t.Logf("the checks after %s are skipped: the kernel would fail or hang in them too", c.name)
					break
				}
			}

			if len(failed) == 0 {
				t.Log(kernel.unreached())
			}
			if len(failed) > 1 {
				t.Logf("%d checks failed, often for one reason: begin with the first, %s", len(failed), failed[0])
			}
		})
	}
}

// check runs c in all media until it fails. goOn reports whether the next checks make
// sense: not if c failed and they depend on it, nor if the kernel hangs.
func (s *subject) check(t *testing.T, c *check) (passed, goOn bool) {
	var hangs, isOver bool
	passed = t.Run(c.name, func(t *testing.T) {
		for _, w := range c.media {
			ok := t.Run(w.name, func(t *testing.T) {
				for _, z := range c.sizes(s) {
					passed := t.Run(z.String(), func(t *testing.T) { hangs, isOver = s.at(z).try(t, c, w, z.ranks) })
					if !passed || isOver {
						return
					}
				}
			})

			if !ok || isOver {
				return
			}
		}
	})
	return passed, passed || !c.ground && !hangs
}

// try runs one case of a check. It reports whether the kernel hangs, and whether the check
// is over for another reason.
func (s *subject) try(t *testing.T, c *check, w medium, n int) (hangs, isOver bool) {
	err := c.run(s, w, n)
	if skip, ok := errors.AsType[*skipped](err); ok {
		t.Logf("%s does not apply in this case: %s", c.name, skip.why)
		return false, skip.rest
	}
	report(t, w.in(err), c)
	return stuck(err), false
}
