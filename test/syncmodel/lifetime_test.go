package syncmodel

import "testing"

// Who frees an endpoint: a separate model of a rank's calls, two Closes, a goroutine that
// reads the endpoint beside calls, and the driver of p2p, in any order of their steps. They
// share one word, and the two flags of p2p under its lock. An atomic loop of
// load and compare-and-swap is one step here.

// The word.
const (
	inCall  uint8 = 1
	isClose uint8 = 2
	oneHold uint8 = 4 // and multiples of it; one of them is p2p's at first
)

// Steps of a user of the endpoint.
const (
	comeIn   uint8 = iota // take a part of the word, or be refused
	startUse              // of the endpoint
	endUse
	stopP2P    // Close: sets stopped, and reads driving
	noteIt     // uses the endpoint once more, if Close was called
	giveUpPart // takes its part out of the word
	freeIt     // the one that leaves isClose alone
	noteForP2P // Close or the driver: the same for the part of p2p
	giveUpP2P
	freeForP2P
	noteLate // what noteIt does, without its rule
	finished
)

// Users, by index. The driver runs from the start.
const (
	theCaller uint8 = iota // makes two calls
	closerOne
	closerTwo
	observer
	driver
	users
)

type user struct {
	at    uint8
	calls uint8
	using bool
	noted bool
}

type life struct {
	word     uint8
	closedEp bool
	freed    uint8
	driving  bool
	stopped  bool
	user     [users]user
}

// A lifeRule is a part of the protocol without which an endpoint is freed too early, twice
// or never.
type lifeRule string

const (
	closeHolds    lifeRule = "Close holds the endpoint until it has closed it and stopped p2p"
	firstCloses   lifeRule = "only the first of several Closes proceeds"
	lastFrees     lifeRule = "the one that leaves closing alone in the word frees"
	noneAfterFree lifeRule = "a hold is refused when closing is alone in the word"
	noneInClosed  lifeRule = "no call enters a closed endpoint"
	noteFirst     lifeRule = "the last read of the endpoint precedes giving up the hold"
	driverKeeps   lifeRule = "the hold of p2p is given up by its driver, if it has one"
)

var lifeRules = []lifeRule{closeHolds, firstCloses, lastFrees, noneAfterFree, noneInClosed, noteFirst, driverKeeps}

// step returns the state after u's next step, whether u can make one, and what is wrong.
func (s life) step(u uint8, without lifeRule) (n life, ok bool, broken string) {
	n = s
	me := &n.user[u]
	has := func(r lifeRule) bool { return without != r }
	part := oneHold
	if u == theCaller {
		part = inCall
	}
	free := func() {
		n.freed++
		for _, other := range n.user {
			if other.using {
				broken = "freed while it is used"
			}
		}
		switch {
		case n.freed > 1:
			broken = "freed twice"
		case !n.closedEp:
			broken = "freed before it was closed"
		}
	}
	use := func(using bool) {
		me.using = using
		if n.freed > 0 {
			broken = "used after it was freed"
		}
	}
	// giveUp takes a part out of the word, and reports whether its owner has to free; again is
	// true if Close came in between.
	giveUp := func(part uint8) (frees, again bool) {
		if n.word&isClose != 0 && !me.noted && has(noteFirst) {
			return false, true
		}
		n.word -= part
		return n.word == isClose || !has(lastFrees) && n.word&isClose != 0, false
	}
	switch me.at {
	case comeIn:
		me.at = startUse
		switch {
		case u == theCaller && n.word&isClose != 0 && has(noneInClosed):
			me.at = finished
		case u == theCaller:
			n.word |= inCall
		case (u == closerOne || u == closerTwo) && n.word&isClose != 0 && has(firstCloses):
			me.at = finished
		case u == closerOne || u == closerTwo:
			n.word |= isClose
			if has(closeHolds) {
				n.word += oneHold
			}
		case n.word == isClose && has(noneAfterFree):
			me.at = finished
		default:
			n.word += oneHold
		}
	case startUse:
		use(true)
		me.at = endUse
	case endUse:
		use(false)
		me.at = noteIt
		switch u {
		case closerOne, closerTwo:
			n.closedEp = true
			me.at = stopP2P
		case driver:
			n.driving = false
			me.at = finished
			if n.stopped {
				me.at = noteForP2P
			}
		}
	case stopP2P:
		n.stopped = true
		me.at = noteIt
		if !n.driving || !has(driverKeeps) {
			me.at = noteForP2P
		}
	case noteIt, noteForP2P:
		if n.word&isClose != 0 && has(noteFirst) {
			use(false)
			me.noted = true
		}
		me.at++
	case giveUpPart:
		if (u == closerOne || u == closerTwo) && !has(closeHolds) {
			me.at = finished
			break
		}
		frees, again := giveUp(part)
		switch {
		case again:
			me.at = noteIt
		case frees:
			me.at = freeIt
		case !has(noteFirst) && n.word&isClose != 0:
			me.at = noteLate
		default:
			me.at = n.after(u)
		}
	case noteLate:
		use(false)
		me.at = n.after(u)
	case giveUpP2P:
		frees, again := giveUp(oneHold)
		switch {
		case again:
			me.at = noteForP2P
		case frees:
			me.at = freeForP2P
		default:
			me.at = n.afterPost(u)
		}
	case freeIt:
		free()
		me.at = n.after(u)
	case freeForP2P:
		free()
		me.at = n.afterPost(u)
	case finished:
		return s, false, ""
	}
	return n, true, broken
}

func (s *life) after(u uint8) uint8 {
	me := &s.user[u]
	me.noted = false
	if me.calls++; u == theCaller && me.calls < 2 {
		return comeIn
	}
	return finished
}

func (s *life) afterPost(u uint8) uint8 {
	s.user[u].noted = false
	if u == driver {
		return finished
	}
	return noteIt // its own part
}

// freesWrong returns what can go wrong, and how many states there are.
func freesWrong(without lifeRule) (what string, states int) {
	start := life{word: oneHold, driving: true}
	start.user[driver].at = startUse
	visited := map[life]bool{start: true}
	queue := []life{start}
	for ; states < len(queue); states++ {
		s := queue[states]
		moved := false
		for u := range users {
			n, ok, broken := s.step(u, without)
			if broken != "" {
				return broken, states
			}
			moved = moved || ok
			if ok && !visited[n] {
				visited[n] = true
				queue = append(queue, n)
			}
		}
		if !moved && s.freed != 1 {
			return "never freed", states
		}
	}
	return "", states
}

func TestLifetime(t *testing.T) {
	if broken, states := freesWrong(""); broken != "" || states < 1000 {
		t.Errorf("an endpoint is %s, in %d states", broken, states)
	}
	for _, rule := range lifeRules {
		broken, _ := freesWrong(rule)
		if broken == "" {
			t.Errorf("nothing goes wrong without the rule: %s", rule)
		}
		t.Logf("without the rule that %s: %s", rule, broken)
	}
}
