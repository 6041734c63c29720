package syncmodel

import "testing"

// Where ranks do not see each other's memory they show copies, turn by turn. This is a
// model of its own, of three ranks that make some turns, in any order of their steps. How
// a rank tells that it has come to a turn, by a word or by entering a call, does not
// matter: either only grows.

// Steps of a rank at a turn.
const (
	beginCopy uint8 = iota // it writes its half
	endCopy
	come         // it tells that it has come
	awaitFirst   // it waits for one peer
	awaitSecond  // and the other
	lookAtFirst  // it looks at what that one shows
	lookAtSecond // and the other
	goOn         // to the next turn
)

// What a half holds: the turn for which it was written, or
const torn = 255

const turns = 5 // each half is written again, and read again

type turner struct {
	turn, step uint8 // turns are counted from 1
	came       uint8 // to which turn
	half       [2]uint8
	wrong      bool // it has seen something else than its turn shows
}

// A turnRule is a part of the protocol without which a rank sees something else.
type turnRule string

const (
	copyBeforeCome turnRule = "a rank has copied before it comes to the turn"
	awaitAll       turnRule = "a rank goes on when all have come"
	halvesInTurns  turnRule = "turns use the halves in turns"
	lookBeforeNext turnRule = "a rank has looked before it comes to the next turn"
)

type table [3]turner

// step returns the state after rank's next step, and whether it can make one.
func (s table) step(rank int, without turnRule) (table, bool) {
	program := []uint8{beginCopy, endCopy, come, awaitFirst, awaitSecond, lookAtFirst, lookAtSecond, goOn}
	switch without {
	case copyBeforeCome:
		program = []uint8{come, beginCopy, endCopy, awaitFirst, awaitSecond, lookAtFirst, lookAtSecond, goOn}
	case awaitAll:
		program = []uint8{beginCopy, endCopy, come, awaitFirst, lookAtFirst, goOn}
	}
	r := &s[rank]
	if r.turn > turns {
		return s, false
	}
	half := r.turn & 1
	if without == halvesInTurns {
		half = 0
	}
	step := program[r.step]
	peer := &s[(rank+1)%3]
	if step == awaitSecond || step == lookAtSecond {
		peer = &s[(rank+2)%3]
	}
	r.step++
	switch step {
	case beginCopy:
		r.half[half] = torn
	case endCopy:
		r.half[half] = r.turn
	case come:
		r.came = r.turn
	case awaitFirst, awaitSecond:
		if peer.came < r.turn {
			return s, false
		}
		if without == lookBeforeNext && step == awaitSecond && r.turn < turns {
			r.came++ // before it looks
		}
	case lookAtFirst, lookAtSecond:
		r.wrong = r.wrong || peer.half[half] != r.turn
	case goOn:
		r.turn, r.step = r.turn+1, 0
	}
	return s, true
}

// seesWrong reports whether a rank can see something else than a turn shows, or wait for
// ever, and how many states there are.
func seesWrong(without turnRule) (wrong bool, states int) {
	first := turner{turn: 1}
	visited := map[table]bool{{first, first, first}: true}
	queue := []table{{first, first, first}}
	for ; states < len(queue); states++ {
		stuck := true
		for rank := range queue[states] {
			next, ok := queue[states].step(rank, without)
			if !ok {
				wrong = wrong || queue[states][rank].wrong
				continue
			}
			stuck = false
			wrong = wrong || next[rank].wrong
			if !visited[next] {
				visited[next] = true
				queue = append(queue, next)
			}
		}
		for _, r := range queue[states] {
			wrong = wrong || stuck && r.turn <= turns
		}
	}
	return wrong, states
}

func TestTurns(t *testing.T) {
	if wrong, states := seesWrong(""); wrong || states < 500 {
		t.Errorf("a rank sees something else: %v, in %d states", wrong, states)
	}
	for _, rule := range []turnRule{copyBeforeCome, awaitAll, halvesInTurns, lookBeforeNext} {
		if wrong, _ := seesWrong(rule); !wrong {
			t.Errorf("no rank sees anything else without the rule: %s", rule)
		}
	}
}
