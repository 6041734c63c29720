package syncmodel

import "testing"

// Ranks that do not share memory exchange copies in turns. This is a separate model, of three
// ranks that make a call of some turns, in any order of their steps. Whether a rank announces
// its arrival at a turn by a word or by entering a call does not matter: either only grows.
//
// Rank 0 fails the group when it has succeeded, in a call that is not modelled. Rank 1 may
// give up inside the call where it waits, in some runs, and the process of rank 2 may die
// at any step.

// Steps of a rank at a turn.
const (
	startCopy uint8 = iota // it writes its half
	endCopy
	come         // it announces that it has arrived
	awaitFirst   // it waits for one peer
	awaitSecond  // and the other
	lookAtFirst  // it reads the copy of that one
	lookAtSecond // and the other
	goOn         // to the next turn
	lookFirst    // one peer has not arrived: it looks at what ends the wait
	lookSecond   // or the other
	retestFirst  // that has interrupted it
	retestSecond
	failAfterward // it has succeeded: rank 0 fails the group
	callOver
)

// What a half holds: the turn for which it was written, or
const torn = 255

const turns = 4 // each half is written again, and read again

type turner struct {
	turn, step uint8 // turns are counted from 1
	came       uint8 // to which turn
	half       [2]uint8
	wrong      bool // it has read the copy of another turn
	succeeded  bool
	failed     bool
	dead       bool
}

// A turnRule is a part of the protocol without which a rank reads the copy of another turn,
// waits forever, or fails a call that succeeds elsewhere.
type turnRule string

const (
	copyBeforeCome turnRule = "a rank has copied before it arrives at the round"
	awaitAll       turnRule = "a rank continues when all have arrived"
	halvesInTurns  turnRule = "rounds alternate between the halves"
	lookBeforeNext turnRule = "a rank has read before it arrives at the next round"
	copiesSuffice  turnRule = "a rank that reads copies checks nothing else"
	comeBeatsFail  turnRule = "a rank that was interrupted tests once more whether the other has arrived"
	turnsEnd       turnRule = "a wait for a round looks at failures and deaths"
)

var turnRules = []turnRule{copyBeforeCome, awaitAll, halvesInTurns, lookBeforeNext, copiesSuffice, comeBeatsFail, turnsEnd}

type table struct {
	rank  [3]turner
	fail  bool
	gives bool // rank 1 may give up
}

// step returns the state after rank's next step, and whether it can make one.
func (s table) step(rank int, without turnRule) (table, bool) {
	r := &s.rank[rank]
	half := r.turn & 1
	if without == halvesInTurns {
		half = 0
	}
	peer := &s.rank[(rank+1)%3]
	switch r.step {
	case awaitSecond, lookAtSecond, lookSecond, retestSecond:
		peer = &s.rank[(rank+2)%3]
	}
	fail := func() {
		s.fail, r.failed, r.step = true, true, callOver
	}
	next := r.step + 1
	switch r.step {
	case startCopy:
		r.half[half] = torn
	case endCopy:
		r.half[half] = r.turn
		if without == copyBeforeCome {
			next = awaitFirst
		}
	case come:
		r.came = r.turn
		if without == copyBeforeCome {
			next = startCopy
		}
	case awaitFirst, awaitSecond:
		if peer.came < r.turn {
			r.step += lookFirst - awaitFirst
			return s, true
		}
		switch {
		case without == lookBeforeNext && r.step == awaitSecond && r.turn < turns:
			r.came++ // before it looks
		case without == awaitAll:
			next = lookAtFirst
		}
	case lookFirst, lookSecond:
		switch {
		case (s.fail || peer.dead) && without != turnsEnd:
			next = r.step + retestFirst - lookFirst
		case peer.came < r.turn:
			return s, false // it would look at the same again
		default:
			next = r.step + awaitFirst - lookFirst
		}
	case retestFirst, retestSecond:
		if peer.came < r.turn || without == comeBeatsFail {
			fail()
			return s, true
		}
		next = r.step + awaitFirst - retestFirst + 1
	case lookAtFirst, lookAtSecond:
		if without == copiesSuffice && s.fail {
			fail()
			return s, true
		}
		r.wrong = r.wrong || peer.half[half] != r.turn
		if without == awaitAll {
			next = goOn
		}
	case goOn:
		if r.turn == turns {
			r.succeeded = true
			next = callOver
			if rank == 0 {
				next = failAfterward
			}
			break
		}
		r.turn++
		next = firstStep(without)
	case failAfterward:
		s.fail = true
		next = callOver
	case callOver:
		return s, false
	}
	r.step = next
	return s, true
}

func firstStep(without turnRule) uint8 {
	if without == copyBeforeCome {
		return come
	}
	return startCopy
}

// others returns the states after a rank dies or gives up.
func (s table) others() (all []table) {
	if r := s.rank[2]; r.step != callOver {
		r.dead, r.step = true, callOver
		next := s
		next.rank[2] = r
		all = append(all, next)
	}
	if r := s.rank[1]; s.gives && (r.step == lookFirst || r.step == lookSecond) {
		r.failed, r.step = true, callOver
		next := s
		next.fail, next.rank[1] = true, r
		all = append(all, next)
	}
	return all
}

// bad reports a forbidden state: a rank has read the copy of another turn; or, where none
// gives up inside the call, it succeeds on one rank and fails on another.
func (s table) bad() bool {
	var succeeded, failed bool
	for _, r := range s.rank {
		if r.wrong {
			return true
		}
		succeeded, failed = succeeded || r.succeeded, failed || r.failed
	}
	return succeeded && failed && !s.gives
}

// seesWrong reports whether a forbidden state is reachable, or a rank can wait forever, and
// the number of states.
func seesWrong(without turnRule, gives bool) (wrong bool, states int) {
	first := turner{turn: 1, step: firstStep(without)}
	start := table{rank: [3]turner{first, first, first}, gives: gives}
	visited := map[table]bool{start: true}
	queue := []table{start}
	visit := func(s table) {
		wrong = wrong || s.bad()
		if !visited[s] {
			visited[s] = true
			queue = append(queue, s)
		}
	}
	for ; states < len(queue) && !wrong; states++ {
		s := queue[states]
		stuck := true
		for rank := range s.rank {
			if next, ok := s.step(rank, without); ok {
				stuck = false
				visit(next)
			}
		}
		for _, r := range s.rank {
			wrong = wrong || stuck && r.step != callOver
		}
		for _, next := range s.others() {
			visit(next)
		}
	}
	return wrong, states
}

func TestTurns(t *testing.T) {
	for _, gives := range []bool{false, true} {
		if wrong, states := seesWrong("", gives); wrong || states < 500 {
			t.Errorf("a rank sees something else, waits forever, or fails alone: %v, in %d states", wrong, states)
		}
	}
	for _, rule := range turnRules {
		if wrong, _ := seesWrong(rule, false); !wrong {
			t.Errorf("nothing goes wrong without the rule: %s", rule)
		}
	}
}
