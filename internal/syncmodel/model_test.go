package syncmodel

import "strings"

// A model is the protocol, possibly without one of its rules, and the ranks that follow it.
type model struct {
	mode    mode
	without rule
	calls   [][]call // per rank
	ending  []byte   // per rank
	wrong   *violation
}

// A mode says how ranks wait and who runs the bodies.
type mode uint8

const (
	spinning mode = iota // flat: loads again and again
	sleeping             // flat: tests once, then sleeps until a peer leaves a token
	parked               // the last arriver runs every body; the others sleep
)

var modeNames = [...]string{"spinning", "sleeping", "parked"}

// A call as a script spells it. Ranks that spell it differently make different calls.
type call struct {
	name    byte
	panics  bool // this rank's kernel fails after it touched its peers' memory
	cancels bool // the context may end, at any point of any wait
}

// A script is a rank's calls, one letter each; a capital letter is a call whose context may end. Then the
// rank leaves, unless a sign says something else.
const (
	inline      = 'i' // one sync; the data is in the lines
	window      = 'w' // exposes memory, ends with the completion sync
	largeWindow = 'l' // the same; in parked mode with helpers
	messages    = 'm' // the same; in parked mode every rank runs its own body
	faulty      = 'x' // a window whose kernel panics on this rank
	refusal     = 'r' // refused for its arguments, on this rank

	byAbort   = '!' // the worker returns an error
	byHanging = '?' // the rank neither calls nor leaves: its peers have their timeout only
)

func newModel(m mode, without rule, scripts []string) *model {
	mod := &model{mode: m, without: without}
	for _, script := range scripts {
		var ending byte
		if strings.HasSuffix(script, "!") || strings.HasSuffix(script, "?") {
			ending = script[len(script)-1]
			script = script[:len(script)-1]
		}
		if script == "-" {
			script = ""
		}
		calls := []call{}
		for _, letter := range []byte(script) {
			c := call{name: letter | 0x20, cancels: letter&0x20 == 0}
			if c.name == faulty {
				c.name, c.panics = window, true
			}
			calls = append(calls, c)
		}
		mod.calls = append(mod.calls, calls)
		mod.ending = append(mod.ending, ending)
	}
	return mod
}

func (m *model) ranks() int { return len(m.calls) }

// panicking returns the rank whose kernel fails in call i, or -1.
func (m *model) panicking(i uint8) int {
	for r, calls := range m.calls {
		if int(i) < len(calls) && calls[i].panics {
			return r
		}
	}
	return -1
}

// hangs says that a rank may be waited for in vain.
func (m *model) hangs() bool { return strings.ContainsRune(string(m.ending), byHanging) }

func (m *model) start() state {
	var s state
	for r := range maxRanks {
		if r >= m.ranks() {
			s.rank[r].at = end
			continue
		}
		me := &s.rank[r]
		v := m.move(&s, r)
		if v.has(freshLook) {
			me.seen = never
		}
		me.at = v.begin()
	}
	return s
}

func (m *model) move(s *state, r int) *move { return &move{state: s, m: m, r: r, me: &s.rank[r]} }

// step lets rank r take its next step in s and reports whether it could.
func (m *model) step(s *state, r int) bool {
	v := m.move(s, r)
	at := program[v.me.at].step(v)
	if at == blocked {
		return false
	}
	v.me.at = at
	return true
}

// interrupt ends the context of rank r, or its patience, where it looks at them: in a wait that can be
// interrupted, before it sleeps or while it does.
func (m *model) interrupt(s *state, r int) bool {
	v := m.move(s, r)
	if (v.me.at != poll && v.me.at != sleep) || !v.me.wait.interruptible() {
		return false
	}
	v.me.at = v.interrupt(cancelled)
	return true
}

func (m *model) cancels(s *state, r int) bool {
	i := int(s.rank[r].call)
	return i < len(m.calls[r]) && m.calls[r][i].cancels
}
