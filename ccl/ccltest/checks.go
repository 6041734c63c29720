package ccltest

import (
	"fmt"
	"slices"
)

// check tests one rule: run returns an error that shows how n ranks in medium w broke it.
type check struct {
	name   string
	ground bool // the checks after it depend on it
	wide   bool // Ranks and Extents add cases to it
	media  []medium
	ranks  []int
	run    func(s *subject, w medium, n int) error
	rule   string
}

// mostRanks is the size of the suite's largest group, except that of Many.
const mostRanks = 16

// shortRanks are the groups of the suite with -short: those on which it sees its own mutants, and
// one with trees of three levels, and that of Many.
var shortRanks = []int{1, 2, 3, 8, manyRanks}

type size struct {
	ranks int
	w, h  int // extents of its topology; 0: as close to a square as possible
}

func (z size) String() string {
	if z.w > 0 {
		return fmt.Sprintf("extents=%dx%d", z.w, z.h)
	}
	return fmt.Sprintf("ranks=%d", z.ranks)
}

// sizes returns the groups in which c tests s.
func (c *check) sizes(s *subject) []size {
	var all []size
	for _, n := range c.ranks {
		if !s.fewGroups || slices.Contains(shortRanks, n) {
			all = append(all, size{ranks: n})
		}
	}

	if c.wide {
		for _, z := range s.moreSizes() {
			if !slices.Contains(all, z) {
				all = append(all, z)
			}
		}
	}
	return all
}

// valid checks the algorithm itself; it runs before the checks of its kernels.
var valid = &check{name: "Validate",
	rule: "an algorithm has a name, documentation, valid default parameters, and kernels that are documented, declare their Cost and support something"}

// checks lists the checks in their order. Each assumes that a kernel keeps the rules before
// its own, so that the first check to fail names the broken rule.
var checks = []*check{
	{"Completes", true, true, []medium{poll, park, smallest}, []int{2, 3, 4, 5, 7, 8}, completes,
		"a call that the kernel does not refuse ends without an error and without a panic"},
	{"Messages", true, true, []medium{poll, park, smallest}, []int{2, 3, 4, 5, 7, 8}, messages,
		"every message is received: by the rank it is sent to, in the same call, in the order and at the length it is sent; and no cycle of ranks waits for each other, since a sender waits until its message has been received"},
	{"Supports", true, true, []medium{poll, park, smallest}, []int{2, 3, 4, 5, 7, 8}, supports,
		"a call of a shape that a kernel does not support is refused with ErrNotImplemented, on all ranks, before anything moves, and the group lives on; a call of any other shape is not refused"},
	{"Result", true, true, []medium{poll, park, arena}, []int{1, 2, 3, 4, 5, 7, 8, 11, 16}, results,
		"every rank gets the result of the sequential definition, whatever the type, operation, size, root and number of ranks"},
	{"Pieces", true, true, []medium{smallest, arena}, []int{2, 3, 4, 5, 7, 8, 11, 16}, pieces,
		"the result is the same where inputs and messages arrive in pieces"},
	{"Guards", false, true, []medium{poll, park, arena, smallest}, []int{2, 3, 5, 8}, guards,
		"a kernel writes to its output and nowhere else: not to inputs, not around buffers, which are aligned to their elements only, and not to the gaps between blocks, which may be in any order"},
	{"InPlace", false, true, []medium{poll, park, arena, smallest}, []int{2, 3, 4, 7}, inPlace,
		"the result is the same whether all ranks work in place, none, or some"},
	{"Jitter", false, true, jittered(poll, park, arena, smallest), []int{2, 3, 5, 8}, jitter,
		"the result does not depend on timing"},
	{"SameBits", false, true, []medium{everywhere}, []int{2, 3, 5, 11}, sameBits,
		"the result has the same bits on all ranks, in all runs and media, in place or not, whatever the timing and GOMAXPROCS"},
	{"Cost", false, true, []medium{poll, park, arena, smallest}, []int{2, 3, 4, 7, 8}, costs,
		"Cost declares exactly the steps and bytes that the kernel takes, where blocks have equal lengths"},
	{"Cancel", false, false, []medium{poll, park, smallest}, []int{2, 3}, cancels,
		"a call whose context has ended is refused; a wait that is cancelled or times out ends the call on all ranks, with an error that names the rank that gave up or is missing"},
	{"Leave", false, false, append(jittered(poll, park), poll, park, smallest), []int{2, 3, 5}, leaves,
		"when a rank aborts, leaves or is cancelled, at whatever step, every other rank returns the right result or an error that names that rank; a broadcast's root keeps its data; and from then on no rank touches their buffers"},
	{"State", false, false, []medium{poll, park, arena}, []int{2, 4}, state,
		"a kernel keeps no state outside of its Call: calls of different groups do not disturb each other, and a call on the buffers of another is a new call"},
	{"Leaks", false, false, []medium{poll, park, arena}, []int{3}, leaks,
		"when a group is closed nothing of it is left running"},
	{"Allocs", false, true, []medium{poll, park, arena}, []int{2, mostRanks}, allocations,
		"a call of a kind that was made before allocates nothing, however many ranks make it"},
	{"Many", false, false, []medium{park}, []int{manyRanks}, many,
		"every rank gets the right result on 33 ranks too"},
}

func checkNamed(name string) *check {
	return checks[slices.IndexFunc(checks, func(c *check) bool { return c.name == name })]
}

// skipped is returned by a check that does not apply. cause may be nil.
type skipped struct {
	why   string
	cause error
	rest  bool // it does not apply to the following cases either
}

func (e *skipped) Error() string { return e.why }
func (e *skipped) Unwrap() error { return e.cause }
