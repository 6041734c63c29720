package syncmodel

import (
	"fmt"
	"strings"
)

// A node is a state that was reached, and how.
type node struct {
	state
	parent int
	rank   int
	lost   bool   // the rank did not take a step but lost its context,
	did    string // or this
}

// explore visits every state that the ranks can reach by taking their steps in any order, nearest first. It
// returns how many there are, or the first violation. want names the kinds of failure that the group may end
// with.
func (m *model) explore(want string) (int, *violation) {
	nodes := []node{{state: m.start()}}
	visited := map[state]struct{}{nodes[0].state: {}}

	// visit adds what rank r makes of node i, and reports whether it can make anything of it.
	did := ""
	visit := func(i, r int, lost bool, act func(*state, int) bool) bool {
		n := node{state: nodes[i].state, parent: i, rank: r, lost: lost, did: did}
		if !act(&n.state, r) {
			return false
		}
		known := len(visited)
		visited[n.state] = struct{}{}
		if len(visited) > known || m.found != nil {
			nodes = append(nodes, n)
		}
		return true
	}

	// A timeout comes when nothing else does, in scenarios that need it.
	impatient := strings.ContainsRune(string(m.ending), byStaying) && strings.Contains(want, cancelled.String())

	for i := 0; i < len(nodes); i++ {
		moved := false
		for r := range m.calls {
			moved = visit(i, r, false, m.step) || moved
			if m.mayLose(&nodes[i].state, r) {
				visit(i, r, true, m.lose) // it may, or may not
			}
			if m.mayDie() {
				did = "sleeps until its sleep runs out"
				moved = visit(i, r, false, m.runOut) || moved
				did = "dies"
				visit(i, r, false, m.die) // it may
				did = ""
			}
			if m.found != nil {
				return len(nodes), m.traced(nodes, len(nodes)-1)
			}
		}
		if !moved && impatient {
			for r := range m.calls {
				moved = visit(i, r, true, m.lose) || moved
			}
		}
		if moved {
			continue
		}
		if m.move(&nodes[i].state, 0).checkEnd(want); m.found != nil {
			return len(nodes), m.traced(nodes, i)
		}
	}
	return len(nodes), nil
}

// traced adds to the violation how it came to node i.
func (m *model) traced(nodes []node, i int) *violation {
	for ; i > 0; i = nodes[i].parent {
		n := nodes[i]
		m.found.trace = "\t" + m.words(&nodes[n.parent].state, n.rank, n.lost, n.did) + "\n" + m.found.trace
	}
	return m.found
}

// words describes what rank r does next.
func (m *model) words(s *state, r int, lost bool, did string) string {
	v := m.move(s, r)
	does := program[v.me.at].does
	if lost {
		does = "loses its context, or its patience"
	}
	if did != "" {
		does = did
	}
	peer := fmt.Sprintf("rank %d", v.peer())
	waits := [...]string{
		forRejected:  "whether " + peer + " has rejected the same calls",
		forEpoch:     "the epoch of " + peer,
		forDone:      "whether " + peer + " is done",
		forOut:       "whether " + peer + " is done",
		forCompleted: "whether the call is completed",
		forRunners:   "whether runners is 0",
	}
	does = strings.NewReplacer("PEER", peer, "LOOK", fmt.Sprintf("rank %d", v.looked()), "WAIT", waits[v.me.wait], "WHY", v.me.why.String()).Replace(does)
	switch {
	case v.outsider():
		return "another goroutine: " + does
	case int(v.me.call) == len(m.calls[r]):
		return fmt.Sprintf("rank %d, at its end: %s", r, does)
	}
	return fmt.Sprintf("rank %d, call %d (%c): %s", r, v.seq(), v.name(), does)
}
