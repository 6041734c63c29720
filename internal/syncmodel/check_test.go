package syncmodel

import (
	"fmt"
	"strings"
)

// A property is what the protocol promises.
type property string

const (
	dataSafety   property = "data safety"   // what is read from a line is the call's, and nobody writes it meanwhile
	windowSafety property = "window safety" // a rank's memory is touched between its arrival and its return only
	agreement    property = "agreement"     // a call that succeeds on one rank was made and succeeds on all
	oneVerdict   property = "one verdict"   // all ranks return the same cause
	rightVerdict property = "right verdict" // and it is the one that the scenario calls for
	progress     property = "progress"      // nobody waits for ever
)

// A violation is a property that does not hold, and the shortest way there.
type violation struct {
	property property
	what     string
	trace    string
}

func (v *move) violate(p property, format string, args ...any) {
	if v.m.wrong == nil {
		v.m.wrong = &violation{property: p, what: fmt.Sprintf(format, args...)}
	}
}

// readLine reads plain memory of q: its content must be that of this call, and q must not be about to write
// it. In a sequentially consistent world two accesses that could be next to each other are a data race.
func (v *move) readLine(q int) byte {
	l := *v.line(q)
	owner := v.m.move(v.state, q)
	switch {
	case owner.me.at == writeLine && owner.line(q) == v.line(q):
		v.violate(dataSafety, "rank %d reads a line of rank %d, which is about to overwrite it", v.r, q)
	case l.call != v.seq():
		v.violate(dataSafety, "rank %d in call %d reads a line of rank %d that holds call %d", v.r, v.seq(), q, l.call)
	}
	return l.name
}

func (v *move) checkEpoch(epoch uint8) {
	if epoch > v.seq() {
		v.violate(dataSafety, "rank %d in call %d finds epoch %d", v.r, v.seq(), epoch)
	}
}

// touchAll stands for any number of accesses: the next step can be put off as long as the others like.
func (v *move) touchAll() {
	for q := range v.m.ranks() {
		if q != v.r && v.rank[q].exposed != v.seq() {
			v.violate(windowSafety, "rank %d in call %d touches memory of rank %d, which does not expose it", v.r, v.seq(), q)
		}
	}
}

// checkAgreement is for every return. Only a cancel, a timeout or a panic may tear a call, and only the one
// in which it happened.
func (v *move) checkAgreement() {
	var torn uint8
	for _, q := range v.rank {
		torn |= q.tore
	}
	for a := range v.m.ranks() {
		for b := range v.m.ranks() {
			ok, other := v.rank[a].ok, v.rank[b]
			notMade := ^uint8(1<<other.made - 1)
			if ok&^torn&(other.failed|other.refusals) != 0 || ok&notMade != 0 {
				v.violate(agreement, "calls (bits) that succeeded on rank %d: %b; on rank %d failed: %b, refused: %b, last made: %d",
					a, ok, b, other.failed, other.refusals, other.made)
			}
		}
	}
}

func (v *move) checkVerdict() {
	for q := range v.m.ranks() {
		if other := v.rank[q].verdict; other.kind != none && other != v.me.verdict {
			v.violate(oneVerdict, "rank %d returns %v, rank %d returned %v", v.r, v.me.verdict, q, other)
		}
	}
}

// A node is a visited state and how it was reached.
type node struct {
	state
	parent int
	rank   int
	broken bool // by an interrupt, not by a step
}

// explore visits every state that the ranks can reach in any order of their steps, nearest first, and
// returns how many there are, or the first violation.
func (m *model) explore(want string) (int, *violation) {
	nodes := []node{{state: m.start()}}
	// A timeout is there where the scenario says that it is needed, and comes when nothing else does.
	patience := m.hangs() && strings.Contains(want, cancelled.String())
	visited := map[state]bool{nodes[0].state: true}

	for i := 0; i < len(nodes); i++ {
		// add visits what a rank can do in node i, and reports whether it can do it.
		add := func(r int, broken bool, act func(*state, int) bool) bool {
			s := nodes[i].state
			if !act(&s, r) {
				return false
			}
			if m.wrong != nil || !visited[s] {
				visited[s] = true
				nodes = append(nodes, node{state: s, parent: i, rank: r, broken: broken})
			}
			return true
		}
		moved := false
		for r := range m.ranks() {
			moved = add(r, false, m.step) || moved
			if m.wrong == nil && m.cancels(&nodes[i].state, r) {
				add(r, true, m.interrupt) // may happen: nobody can rely on it
			}
			if m.wrong != nil {
				return len(nodes), m.traced(nodes, len(nodes)-1)
			}
		}
		if moved {
			continue
		}
		if patience {
			for r := range m.ranks() {
				moved = add(r, true, m.interrupt) || moved // the timeout of a rank that waits in vain
			}
		}
		if moved {
			continue
		}
		if m.stuck(&nodes[i].state, want); m.wrong != nil {
			return len(nodes), m.traced(nodes, i)
		}
	}
	return len(nodes), nil
}

// stuck judges a state in which nothing happens any more.
func (m *model) stuck(s *state, want string) {
	v := m.move(s, 0)
	for r := range m.ranks() {
		if s.rank[r].at != end {
			v.violate(progress, "rank %d waits for ever", r)
		}
	}
	if !strings.Contains(" "+want+" ", " "+s.fail.kind.String()+" ") {
		v.violate(rightVerdict, "the group ends with %v, want one of: %s", s.fail, want)
	}
}

// traced puts the way to node i into words.
func (m *model) traced(nodes []node, i int) *violation {
	var lines []string
	for ; i > 0; i = nodes[i].parent {
		n := nodes[i]
		lines = append(lines, m.words(&nodes[n.parent].state, n.rank, n.broken))
	}
	var b strings.Builder
	for j := range lines {
		fmt.Fprintf(&b, "%4d  %s\n", j+1, lines[len(lines)-1-j])
	}
	m.wrong.trace = b.String()
	return m.wrong
}

// words tells what rank r does next in s.
func (m *model) words(s *state, r int, broken bool) string {
	v := m.move(s, r)
	does := program[v.me.at].does
	if broken {
		does = "loses its context or its patience"
	}
	peer := fmt.Sprintf("rank %d", v.peer())
	conditions := [...]string{
		forRefused:   "whether " + peer + " refused the same calls",
		forEpoch:     "the epoch of " + peer,
		forDone:      "done of " + peer,
		forOut:       "done of " + peer,
		forCompleted: "completed",
		forFolders:   "folders for 0",
	}
	does = strings.NewReplacer("PEER", peer, "FOR", conditions[v.me.wait], "WHY", v.me.why.String()).Replace(does)
	if int(v.me.call) == len(m.calls[r]) {
		return fmt.Sprintf("rank %d            %s", r, does)
	}
	return fmt.Sprintf("rank %d, call %d %c: %s", r, v.seq(), v.name(), does)
}
