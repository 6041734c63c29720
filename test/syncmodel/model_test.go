package syncmodel

import "strings"

// A model is the protocol, perhaps without one of its rules, and the scripts that the ranks follow.
type model struct {
	mode    mode
	without rule
	ranks   uint8
	calls   [][]call // per rank; one more, and empty, for an outsider
	ending  []byte
	found   *violation
}

// A mode is how ranks wait and which ranks run the bodies.
type mode uint8

const (
	spinning mode = 1 << iota // each rank runs its own body; a wait loads again and again
	sleeping                  // each rank runs its own; a wait tests, and then sleeps until it gets a token
	parked                    // the last rank to arrive runs all bodies, while the others sleep
)

var modeNames = map[mode]string{spinning: "spinning", sleeping: "sleeping", parked: "parked"}

// A call is a letter of a script. Ranks with different letters make different calls. A capital is the same
// call with a context that may end, at any point of any wait.
type call struct {
	name    byte
	panics  bool
	cancels bool
}

const (
	inline    = 'i' // one sync: the data is in the lines
	eager     = 'e' // it may touch memory, and turns out to show all payloads instead
	view      = 'w' // ranks touch each other's memory
	largeView = 'l' // a view; in parked mode with helpers
	shared    = 's' // a view; ranks that are awake run the bodies of those that are not
	messages  = 'm' // like a view to the protocol; in parked mode every rank runs its own body
	faulty    = 'x' // a view whose kernel panics on this rank
	rejection = 'r' // a call that this rank rejects for its arguments
)

// After its calls a rank leaves, unless the last letter is one of these.
const (
	byAbort   = '!' // its worker returns an error
	byStaying = '?' // it neither calls nor leaves
	byDying   = '+' // its process may die at any time, without an event; else it leaves
	closer    = '@' // not a rank, see closing
)

// Scripts without calls.
const (
	noCalls = "-"
	anyone  = "*" // not a rank: another goroutine that aborts the group at any time
	closing = "@" // not a rank: another goroutine that closes rank 0 at any time
)

func newModel(m mode, without rule, scripts string) *model {
	mod := &model{mode: m, without: without}
	for _, script := range strings.Fields(scripts) {
		if script != anyone && script != closing {
			mod.ranks++
		}
		var calls []call
		for _, letter := range []byte(strings.TrimRight(script, noCalls+anyone+closing+"!?+")) {
			c := call{name: letter | 0x20, cancels: letter&0x20 == 0}
			if c.name == faulty {
				c.name, c.panics = view, true
			}
			calls = append(calls, c)
		}
		mod.calls = append(mod.calls, calls)
		mod.ending = append(mod.ending, script[len(script)-1])
	}
	return mod
}

func (m *model) runForAll(name byte) bool { return m.mode == parked && name != messages }

// panicking returns the rank whose kernel panics in a call, or -1.
func (m *model) panicking(i uint8) int {
	for r, calls := range m.calls {
		if int(i) < len(calls) && calls[i].panics {
			return r
		}
	}
	return -1
}

func (m *model) start() state {
	var s state
	for r := range s.rank {
		s.rank[r].at = end
		if r < len(m.calls) {
			s.rank[r].at = m.move(&s, r).start()
		}
	}
	return s
}

// step lets rank r take its next step, and reports whether it could.
func (m *model) step(s *state, r int) bool {
	v := m.move(s, r)
	next := program[v.me.at].step(v)
	if next == blocked {
		return false
	}
	v.me.at = next
	return true
}

// lose ends the context of rank r, or its patience, if it is at a point where it would notice.
func (m *model) lose(s *state, r int) bool {
	v := m.move(s, r)
	if (v.me.at != poll && v.me.at != sleep) || !v.me.wait.interruptible() {
		return false
	}
	v.me.at = v.interrupt(cancelled)
	return true
}

// runOut ends the sleep of a rank without a token, where sleeps are bounded because processes may die: once
// in a wait at any time, so that others may continue while the rank looks at them, and then only where the rank
// would load new values.
func (m *model) runOut(s *state, r int) bool {
	v := m.move(s, r)
	switch {
	case v.me.at != sleep || v.me.token:
		return false
	case v.me.wait.interruptible() && v.me.known&ranOut == 0:
		v.me.known |= ranOut
	case !v.noticeable():
		return false
	}
	v.me.suspects = v.me.wait.interruptible() && v.has(sleepersSuspect)
	v.me.at = test
	return true
}

// ranOut in known: a sleep has timed out in this wait.
const ranOut = 1 << 7

func (v *move) noticeable() bool {
	switch v.me.wait {
	case forOut:
		return v.reached() || v.rank[v.peer()].dead && v.has(deadAreOut)
	case forRunners:
		return v.reached()
	}
	var dead uint8
	for q := range v.rank {
		dead |= v.deadBit(q)
	}
	return v.reached() || v.has(sleepersSuspect) && (dead != v.me.known&^ranOut || v.fail.kind != none || v.me.seen != int8(v.events))
}

// die ends a rank's process. What it has stored stays.
func (m *model) die(s *state, r int) bool {
	q := &s.rank[r]
	if r >= int(m.ranks) || m.ending[r] != byDying || q.at == end {
		return false
	}
	*q = rank{
		line: q.line, done: q.done, out: q.out, rejected: q.rejected, departed: q.departed, waitOn: q.waitOn, claimed: q.claimed,
		dead: true, at: end, exposed: q.exposed, made: q.made, ok: q.ok, failed: q.failed, rejections: q.rejections, tore: q.tore,
	}
	return true
}

// mayDie reports whether ranks are processes that may die.
func (m *model) mayDie() bool { return strings.ContainsRune(string(m.ending), byDying) }

// mayLose reports whether the current call of rank r has a context that may end.
func (m *model) mayLose(s *state, r int) bool {
	i := int(s.rank[r].call)
	return i < len(m.calls[r]) && m.calls[r][i].cancels
}
