package syncmodel

import "testing"

// Between processes a rank's token is a word of shared memory, on which it sleeps by a
// futex. This is a separate model: one rank sleeps until two others have each stored a word
// that it waits for and woken it, in any order of their atomic steps. The main model needs
// only one property of a token: no wake is lost.

// Values of the token.
const (
	noToken uint8 = iota
	oneToken
	asleep
)

// Steps of the sleeper.
const (
	testStored  uint8 = iota
	markAsleep        // CAS of the token from none; it fails if a token was left
	enterKernel       // which compares the token, and lets the rank sleep if it is still marked
	inKernel          // until it is woken
	takeToken         // stores none
	awake             // has found what it waited for
)

// Steps of a waker.
const (
	storeIt   uint8 = iota // what is waited for
	leaveOne               // swaps the token for one
	callFutex              // if the token was asleep
)

type tokens struct {
	token, sleeper uint8
	waker          [2]struct {
		at            uint8 // index of its next step
		stored, found bool  // it, and that the token was asleep
	}
}

// A tokenRule is a part of the protocol without which a wake is lost.
type tokenRule string

const (
	storeBeforeWake tokenRule = "a waker stores the awaited word before it leaves the token"
	tokenIsLeft     tokenRule = "a token is left even for a rank that is not asleep"
	kernelCompares  tokenRule = "the kernel lets a rank sleep only while its token is marked asleep"
	testAfterTake   tokenRule = "after a rank has taken a token it tests before it sleeps"
	wakersLive      tokenRule = "a waker that has left a token makes the system call, or the sleep is bounded"
)

// next returns the states that one step leads to.
func (s tokens) next(without tokenRule) (all []tokens) {
	n := s
	switch s.sleeper {
	case testStored:
		n.sleeper = markAsleep
		if s.waker[0].stored && s.waker[1].stored {
			n.sleeper = awake
		}
	case markAsleep:
		n.sleeper = takeToken
		if s.token == noToken {
			n.token, n.sleeper = asleep, enterKernel
		}
	case enterKernel:
		n.sleeper = inKernel
		if s.token != asleep && without != kernelCompares {
			n.sleeper = takeToken
		}
	case takeToken:
		n.token, n.sleeper = noToken, testStored
		if without == testAfterTake {
			n.sleeper = markAsleep
		}
	}
	if n != s {
		all = append(all, n)
	}
	program := []uint8{storeIt, leaveOne, callFutex}
	if without == storeBeforeWake {
		program = []uint8{leaveOne, callFutex, storeIt}
	}
	for i := range s.waker {
		if int(s.waker[i].at) == len(program) {
			continue
		}
		n := s
		w := &n.waker[i]
		switch program[w.at] {
		case storeIt:
			w.stored = true
		case leaveOne:
			w.found = s.token == asleep
			if w.found || without != tokenIsLeft {
				n.token = oneToken
			}
		case callFutex:
			if without == wakersLive { // it is killed before
				dead := n
				dead.waker[i].at = uint8(len(program))
				all = append(all, dead)
			}
			if w.found && s.sleeper == inKernel {
				n.sleeper = takeToken
			}
		}
		w.at++
		all = append(all, n)
	}
	return all
}

// losesWake reports whether the sleeper can sleep forever, and the number of states.
func losesWake(without tokenRule) (lost bool, states int) {
	visited := map[tokens]bool{{}: true}
	queue := []tokens{{}}
	for ; states < len(queue); states++ {
		next := queue[states].next(without)
		lost = lost || len(next) == 0 && queue[states].sleeper != awake
		for _, n := range next {
			if !visited[n] {
				visited[n] = true
				queue = append(queue, n)
			}
		}
	}
	return lost, states
}

func TestTokens(t *testing.T) {
	if lost, states := losesWake(""); lost || states < 50 {
		t.Errorf("a wake is lost: %v, in %d states", lost, states)
	}
	for _, rule := range []tokenRule{storeBeforeWake, tokenIsLeft, kernelCompares, testAfterTake, wakersLive} {
		if lost, _ := losesWake(rule); !lost {
			t.Errorf("no wake is lost without the rule: %s", rule)
		}
	}
}
