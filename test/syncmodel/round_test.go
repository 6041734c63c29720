package syncmodel

import "testing"

// Ranks that do not share memory exchange copies in rounds, and store results over the copies
// that they have read. This is a separate model, of three ranks that make a call of a few rounds,
// in any order of their steps. Whether a rank announces its arrival at a round by a word or by
// entering a call does not matter: either only grows.
//
// Rank 0 fails the group when it has succeeded, in a call that is not modelled. Rank 1 may
// give up inside the call where it waits, and the process of rank 2 may die at any step.
//
// A rank that fails in the last round has arrived there, and the others may yet succeed. It leaves
// the call and waits until each of them has arrived or has left as well: one that leaves before it
// arrives never arrives.

// Steps of a rank at a round.
const (
	startCopy      uint8 = iota // it begins to write its half
	endCopy                     // it has written its half
	announce                    // it announces that it has arrived
	awaitFirst                  // it waits for the rank after it
	awaitSecond                 // it waits for the rank before it
	readFirst                   // it reads the copy of the rank after it
	readSecond                  // it reads the copy of the rank before it
	nextRound                   // it goes on to the next round
	lookFirst                   // the rank after it has not arrived: it looks at what ends the wait
	lookSecond                  // the same for the rank before it
	retestFirst                 // its look found that the wait ends: it tests the arrival once more
	retestSecond                // the same for the rank before it
	failAfterward               // it has succeeded, and as rank 0 it now fails the group
	storeLeft                   // it has failed the group: it leaves the call
	awaitFirstOut               // it waits until the rank after it has arrived, or left, or is dead
	awaitSecondOut              // the same for the rank before it
	testFirst                   // it tests whether the rank after it has arrived
	testSecond                  // the same for the rank before it
	callEnded
)

// torn is what a half holds while its owner writes it. Otherwise it holds the round for which its
// owner has written it.
const torn = 255

const rounds = 4 // each half is written again, and read again

type stagedRank struct {
	round, step uint8 // rounds are counted from 1
	arrived     uint8 // at which round
	half        [2]uint8
	results     [2][3]uint8 // the rounds in which the ranks have stored results to a half
	left        bool        // it has left the call after a failure
	misread     bool        // it has read the copy of another round
	succeeded   bool
	failed      bool
	dead        bool
}

// A roundRule is a part of the protocol without which a rank reads the copy of another round,
// waits forever, or fails a call that succeeds elsewhere.
type roundRule string

const (
	copyBeforeArrival roundRule = "a rank has copied before it arrives at the round"
	awaitAll          roundRule = "a rank continues when all have arrived"
	halvesAlternate   roundRule = "rounds alternate between the halves"
	readBeforeNext    roundRule = "a rank has read, and stored its results, before it arrives at the next round"
	takeBeforeCopy    roundRule = "a rank has taken the results from a half before it writes the half"
	copiesSuffice     roundRule = "a rank that reads copies checks nothing else"
	roundsEnd         roundRule = "a wait for a round looks at failures and deaths"
	leaverTestsRound  roundRule = "a rank that fails in the last round tests it once more when all others have arrived or are out"
)

var roundRules = []roundRule{copyBeforeArrival, awaitAll, halvesAlternate, readBeforeNext, takeBeforeCopy, copiesSuffice, roundsEnd, leaverTestsRound}

type stagedGroup struct {
	rank [3]stagedRank
	fail bool
}

// step returns the state after rank's next step, and whether it can make one.
func (s stagedGroup) step(rank int, without roundRule) (stagedGroup, bool) {
	r := &s.rank[rank]
	half := r.round & 1
	if without == halvesAlternate {
		half = 0
	}
	peer := &s.rank[(rank+1)%3]
	switch r.step {
	case awaitSecond, readSecond, lookSecond, retestSecond, awaitSecondOut, testSecond:
		peer = &s.rank[(rank+2)%3]
	}
	next := r.step + 1

	switch r.step {
	// The copy, and the arrival.
	case startCopy:
		if without != takeBeforeCopy {
			r.take(rank, half)
		}
		r.half[half], r.results[half] = torn, [3]uint8{}
		if without == takeBeforeCopy {
			r.take(rank, half)
		}
	case endCopy:
		r.half[half] = r.round
		if without == copyBeforeArrival {
			next = awaitFirst
		}
	case announce:
		r.arrived = r.round
		if without == copyBeforeArrival {
			next = startCopy
		}

	// The wait for a peer.
	case awaitFirst, awaitSecond:
		if peer.arrived < r.round {
			r.step += lookFirst - awaitFirst
			return s, true
		}
		switch {
		case without == readBeforeNext && r.step == awaitSecond && r.round < rounds:
			r.arrived++ // before it reads
		case without == awaitAll:
			next = readFirst
		}
	case lookFirst, lookSecond:
		switch {
		case (s.fail || peer.dead) && without != roundsEnd:
			next = r.step + retestFirst - lookFirst
		case peer.arrived < r.round:
			return s, false // it would look at the same again
		default:
			next = r.step + awaitFirst - lookFirst
		}
	case retestFirst, retestSecond:
		if peer.arrived < r.round {
			s.fail, r.step = true, storeLeft
			return s, true
		}
		next = r.step + awaitFirst - retestFirst + 1

	// The results, and the end of the round.
	case readFirst, readSecond:
		if without == copiesSuffice && s.fail {
			r.left, r.failed, r.step = true, true, callEnded
			return s, true
		}
		r.misread = r.misread || peer.half[half] != r.round
		peer.results[half][rank] = r.round // its result replaces the copy that it has read
		if without == awaitAll {
			next = nextRound
		}
	case nextRound:
		if r.round == rounds {
			r.succeeded = true
			next = callEnded
			if rank == 0 {
				next = failAfterward
			}
			break
		}
		r.round++
		next = firstStep(without)
	case failAfterward:
		s.fail = true
		next = callEnded

	// The end of a rank that has failed the group.
	case storeLeft:
		r.left = true
		if r.round < rounds || without == leaverTestsRound {
			r.failed, next = true, callEnded
		}
	case awaitFirstOut, awaitSecondOut:
		if peer.arrived < rounds && !peer.left && !peer.dead {
			return s, false
		}
	case testFirst, testSecond:
		switch {
		case peer.arrived < rounds:
			r.failed, next = true, callEnded
		case r.step == testSecond:
			next = readFirst
		}
	case callEnded:
		return s, false
	}
	r.step = next
	return s, true
}

// take takes the results of the round before the last from a half.
func (r *stagedRank) take(rank int, half uint8) {
	for peer, round := range r.results[half] {
		r.misread = r.misread || peer != rank && r.round > 2 && round != r.round-2
	}
}

func firstStep(without roundRule) uint8 {
	if without == copyBeforeArrival {
		return announce
	}
	return startCopy
}

// afterDepartures returns the states after a rank dies or gives up.
func (s stagedGroup) afterDepartures() (all []stagedGroup) {
	if r := s.rank[2]; r.step != callEnded {
		r.dead, r.step = true, callEnded
		next := s
		next.rank[2] = r
		all = append(all, next)
	}
	if r := s.rank[1]; r.step == lookFirst || r.step == lookSecond {
		r.step = storeLeft
		next := s
		next.fail, next.rank[1] = true, r
		all = append(all, next)
	}
	return all
}

// isForbidden reports a forbidden state: a rank has read the copy of another round; or the call
// succeeds on one rank and fails on another.
func (s stagedGroup) isForbidden() bool {
	var succeeded, failed bool
	for _, r := range s.rank {
		if r.misread {
			return true
		}
		succeeded, failed = succeeded || r.succeeded, failed || r.failed
	}
	return succeeded && failed
}

// explore reports whether a forbidden state is reachable, or a rank can wait forever, and
// the number of states.
func explore(without roundRule) (broken bool, states int) {
	first := stagedRank{round: 1, step: firstStep(without)}
	start := stagedGroup{rank: [3]stagedRank{first, first, first}}
	visited := map[stagedGroup]bool{start: true}
	queue := []stagedGroup{start}
	visit := func(s stagedGroup) {
		broken = broken || s.isForbidden()
		if !visited[s] {
			visited[s] = true
			queue = append(queue, s)
		}
	}
	for ; states < len(queue) && !broken; states++ {
		s := queue[states]
		stuck := true
		for rank := range s.rank {
			if next, ok := s.step(rank, without); ok {
				stuck = false
				visit(next)
			}
		}
		for _, r := range s.rank {
			broken = broken || stuck && r.step != callEnded
		}
		for _, next := range s.afterDepartures() {
			visit(next)
		}
	}
	return broken, states
}

func TestRounds(t *testing.T) {
	if broken, states := explore(""); broken || states < 500 {
		t.Errorf("a rank sees something else, waits forever, or fails alone: %v, in %d states", broken, states)
	}
	for _, rule := range roundRules {
		if broken, _ := explore(rule); !broken {
			t.Errorf("nothing goes wrong without the rule: %s", rule)
		}
	}
}
