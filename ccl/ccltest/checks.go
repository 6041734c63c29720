package ccltest

import "slices"

// check is one rule and how to see whether a kernel keeps it: run returns how n
// ranks in world w broke it.
type check struct {
	name   string
	ground bool // the checks after it stand on it
	worlds []world
	ranks  []int
	run    func(s *subject, w world, n int) error
	rule   string
	needs  string // the requirements that it comes from
}

// mostRanks is how many ranks a group of the suite has at most.
const mostRanks = 16

// valid is the check that comes before those of kernels, of the algorithm itself.
var valid = &check{name: "Validate",
	rule: "an algorithm has a name, documentation, valid default parameters, and kernels that are documented, declare their Cost and support something"}

// The checks, in the order in which they are run. Each assumes that a kernel keeps
// the rules before its own, so that the first to fail is the one whose rule was
// broken.
var checks = []*check{
	{"Completes", true, []world{poll, park, smallest}, []int{2, 3, 4, 5, 7, 8}, completes,
		"a call that the kernel does not refuse ends without an error and without a panic", ""},
	{"Messages", true, []world{poll, park, smallest}, []int{2, 3, 4, 5, 7, 8}, messages,
		"every message is received: by the rank it is sent to, in the same call, in the order and at the length it is sent; and no cycle of ranks waits for each other, since a sender waits until its message has been taken", "C16"},
	{"Supports", true, []world{poll, park, smallest}, []int{2, 3, 4, 5, 7, 8}, supports,
		"a call of a shape that a kernel does not support is refused with ErrNotImplemented, on all ranks, before anything moves, and the group lives on; a call of any other shape is not refused", "S4.13, C2"},
	{"Result", true, []world{poll, park, arena}, []int{1, 2, 3, 4, 5, 7, 8, 11, 16}, results,
		"every rank gets the result of the sequential definition, whatever the type, operation, size, root and number of ranks", "C21, C23"},
	{"Pieces", true, []world{smallest, arena}, []int{2, 3, 4, 5, 7, 8, 11, 16}, pieces,
		"the result is the same where a window shows the inputs bit by bit and messages arrive in parts", "C16"},
	{"Guards", false, []world{poll, park, arena, smallest}, []int{2, 3, 5, 8}, guards,
		"a kernel writes to its output and nowhere else: not to inputs, not around buffers, which are aligned to their elements and no more, and not to the gaps between blocks, which may be in any order", "S0.3, C14, C15"},
	{"InPlace", false, []world{poll, park, arena, smallest}, []int{2, 3, 4, 7}, inPlace,
		"the result is the same whether all ranks work in place, none, or some", "C25"},
	{"Jitter", false, jittered(poll, park, arena, smallest), []int{2, 3, 5, 8}, jitter,
		"the result does not depend on timing", "S1.7"},
	{"SameBits", false, []world{everywhere}, []int{2, 3, 5, 11}, sameBits,
		"the result is the same bits on all ranks, in all runs and worlds, in place or not, whatever the timing and GOMAXPROCS", "S0.15, S2.13, C21"},
	{"Cost", false, []world{poll, park, arena, smallest}, []int{2, 3, 4, 7, 8}, costs,
		"Cost declares exactly the steps and bytes that the kernel takes, where blocks are alike", ""},
	{"Cancel", false, []world{poll, park, smallest}, []int{2, 3}, cancels,
		"a call whose context has ended is refused; a wait that is cancelled or times out ends the call on all ranks, with an error that names who gave up or who is missing", "C17, C18, S2.23"},
	{"Leave", false, append(jittered(poll, park), poll, park, smallest), []int{2, 3, 5}, leaves,
		"when a rank aborts, leaves or is cancelled, at whatever step, every other rank returns the right result or an error that names that rank; a broadcast's root keeps what it had; and from then on nobody touches their buffers", "S1.12, S1.19"},
	{"State", false, []world{poll, park, arena}, []int{2, 4}, state,
		"a kernel keeps no state outside of its Call: calls of different groups do not disturb each other, and a call on the buffers of another is a new call", ""},
	{"Leaks", false, []world{poll, park, arena}, []int{3}, leaks,
		"when a group is closed nothing of it is left running", ""},
	{"Allocs", false, []world{poll, park, arena}, []int{2}, allocations,
		"a call of a kind that was made before allocates nothing", "S0.2"},
}

func checkNamed(name string) *check {
	return checks[slices.IndexFunc(checks, func(c *check) bool { return c.name == name })]
}

// skipped is returned by a check that does not apply, and says so. cause may be nil.
type skipped struct {
	why   string
	cause error
	rest  bool // nor does it apply to the cases that follow
}

func (e *skipped) Error() string { return e.why }
func (e *skipped) Unwrap() error { return e.cause }
