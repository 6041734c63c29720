package syncmodel

import "slices"

// never is a value that events does not have: a wait with it will look.
const never = -1

// A move is one rank about to take one step.
type move struct {
	*state
	m  *model
	r  int
	me *rank
}

func (m *model) move(s *state, r int) *move { return &move{state: s, m: m, r: r, me: &s.rank[r]} }

func (v *move) has(r rule) bool { return v.m.without != r }

// The current call.

func (v *move) seq() uint8 { return v.me.call + 1 }
func (v *move) bit() uint8 { return 1 << v.me.call }
func (v *move) name() byte { return v.m.calls[v.r][v.me.call].name }

// runForAll reports whether the last arriver runs the bodies of all.
func (v *move) runForAll() bool { return v.m.runForAll(v.name()) }

// claims reports whether ranks run each other's bodies without a last arriver: each body is claimed before it
// is run, by its own rank or by one that finds it asleep.
func (v *move) claims() bool { return v.m.mode != parked && v.name() == shared }

// exposes reports whether other ranks touch memory of this one: a rank that runs another's body writes its
// output.
func (v *move) exposes() bool { return v.m.mode == parked || v.name() != inline }

// showsPayloads reports whether a rank needs nothing of its peers but what their lines have shown.
func (v *move) showsPayloads() bool { return !v.exposes() || v.name() == eager }

func (v *move) line(q int) *line {
	if !v.has(twoLines) {
		return &v.rank[q].line[0]
	}
	return &v.rank[q].line[v.seq()%2]
}

func (v *move) succeeded() pc {
	v.me.ok |= v.bit()
	v.checkAgreement()
	return v.nextCall()
}

func (v *move) failed() pc {
	v.me.failed |= v.bit()
	v.checkAgreement()
	v.checkVerdict()
	return v.nextCall()
}

// nextCall returns from a call. The memory belongs to the user again; what was private to the call is
// forgotten, so that equal states are seen to be equal.
func (v *move) nextCall() pc {
	me := v.me
	me.call++
	me.exposed = 0
	me.then, me.peer, me.wait, me.why, me.who, me.known = 0, 0, 0, none, 0, 0
	me.slept, me.last, me.helped = false, false, false
	return v.start()
}

func (v *move) start() pc {
	v.lookAfresh()
	switch {
	case v.outsider() && v.m.ending[v.r] == closer:
		return closeRank
	case v.outsider():
		return abort
	case int(v.me.call) < len(v.m.calls[v.r]):
		return enter
	}
	if v.me.closed {
		return v.gone()
	}
	v.me.token = false
	switch v.m.ending[v.r] {
	case byAbort:
		return abort
	case byStaying:
		return end
	}
	if !v.has(wordThenEvent) {
		return v.announce(storeDeparted)
	}
	return storeDeparted
}

// startCall goes on with a call that has its number.
func (v *move) startCall() pc {
	v.me.number = v.seq()
	if v.me.owed > 0 && v.has(settles) {
		return v.await(forRejected)
	}
	return writeLine
}

// closable reports whether another goroutine may close this rank.
func (v *move) closable() bool { return v.r == 0 && slices.Contains(v.m.ending, closer) }

// gone is the end of a rank that is closed.
func (v *move) gone() pc {
	v.me.token = false
	return end
}

// Loops over peers, from the next rank on.

func (v *move) peer() int { return (v.r + 1 + int(v.me.peer)) % int(v.m.ranks) }

func (v *move) nextPeer() bool {
	peers := v.m.ranks - 1
	if v.outsider() || v.me.wait == forBodies {
		peers = v.m.ranks
	}
	v.me.peer++
	if v.me.peer < peers {
		return true
	}
	v.me.peer = 0
	return false
}

// Waiting.

func (v *move) await(w wait) pc {
	v.me.wait, v.me.peer = w, 0
	v.lookAfresh()
	return test
}

func (v *move) lookAfresh() {
	v.me.known, v.me.suspects = 0, false
	if v.has(freshLook) {
		v.me.seen = never
	}
}

func (v *move) reached() bool {
	q := &v.rank[v.peer()]
	switch v.me.wait {
	case forRejected:
		return q.rejected.covers(v.seq()-v.me.owed, v.me.owed)
	case forEpoch:
		epoch := v.line(v.peer()).epoch
		v.checkEpoch(epoch)
		return epoch >= v.seq()
	case forDone, forBodies:
		return q.done >= v.seq()
	case forOut:
		return q.done >= v.seq() || q.out >= v.seq()
	case forCompleted:
		return v.completed >= v.seq()
	default:
		return v.runners == 0
	}
}

// Looking at what may end a wait.

// looked returns the peer that the rank looks at.
func (v *move) looked() int { return (v.r + 1 + int(v.me.look)) % int(v.m.ranks) }

// lookGone loads what a peer that is gone leaves behind.
func (v *move) lookGone() {
	q := v.looked()
	v.me.sawDeparted = v.rank[q].departed
	if v.me.suspects {
		v.me.sawDeparted = v.me.sawDeparted || v.rank[q].dead
		v.me.known |= v.deadBit(q)
	}
}

func (v *move) deadBit(q int) uint8 {
	if v.rank[q].dead {
		return 1 << q
	}
	return 0
}

// lookReached reports whether the peer it looks at has done what it waits for.
func (v *move) lookReached() bool {
	q := &v.rank[v.looked()]
	switch v.me.wait {
	case forRejected:
		return q.rejected.covers(v.seq()-v.me.owed, v.me.owed)
	case forEpoch, forCompleted:
		return v.line(v.looked()).epoch >= v.seq()
	}
	return q.done >= v.seq()
}

// lookOn goes on to the next peer, or ends the look.
func (v *move) lookOn() pc {
	v.me.sawDeparted = false
	v.me.look++
	if v.me.look < v.m.ranks-1 && v.has(looksAtAll) {
		return lookDeparted
	}
	if v.me.quiet {
		v.me.calm = v.me.before
		if !v.has(calmBefore) {
			v.me.calm = int8(v.events)
		}
	}
	v.endLook()
	return test
}

// bump bumps events. It forgets which older values ranks have seen: every older value differs from
// events, so states that differ only in these values count as equal.
func (v *move) bump() {
	v.events++
	for q := range v.rank {
		p := &v.rank[q]
		p.seen, p.before, p.calm = never, never, never
	}
}

func (v *move) endLook() { v.me.before, v.me.quiet, v.me.look, v.me.suspects = 0, false, 0, false }

// idle returns the step of a rank that can only wait. A spinning rank would load the same values again, so it is held
// until that makes a difference. Flags are for words that a peer stores without leaving tokens for all.
func (v *move) idle() pc {
	switch {
	case v.m.mode == spinning && v.reached():
		return test
	case v.m.mode == spinning:
		return blocked
	case v.me.wait.perPeer() && !v.me.flagged:
		return setWaitOn
	}
	return sleep
}

func (v *move) interrupt(why kind) pc {
	v.me.why, v.me.sawDeparted = why, false
	if why == lost || why == arguments {
		v.me.who = uint8(v.looked())
	}
	v.endLook()
	if v.has(secondTest) {
		return retest
	}
	return v.endWait()
}

func (v *move) endWait() pc {
	if v.me.flagged {
		return subSleeper
	}
	return v.afterWait()
}

func (v *move) afterWait() pc {
	if v.me.why != none {
		return v.giveUp()
	}
	return v.advance()
}

// advance goes on with the next peer, or with the call.
func (v *move) advance() pc {
	w := v.me.wait
	v.lookAfresh()
	if w.perPeer() && v.nextPeer() {
		if w == forOut {
			return testBehind
		}
		return test
	}
	v.me.wait, v.me.peer = 0, 0
	switch {
	case w == forRejected:
		return writeLine
	case w == forEpoch:
		return compare
	case w == forOut && (v.claims() && v.has(leaverTestsBodies) || !v.claims() && v.has(leaverTestsDone)):
		return testBodies
	case w == forOut:
		return v.failed()
	case w == forRunners:
		return lastTest
	case w == forCompleted && !v.runForAll():
		return touch
	}
	return v.succeeded()
}

// Waking. All take the step to go on with afterwards.

func (v *move) announce(then pc) pc {
	v.me.then, v.me.peer = then, 0
	return bumpEvents
}

func (v *move) tokens(then pc) pc {
	if v.m.mode == spinning {
		return then
	}
	v.me.then, v.me.peer = then, 0
	return leaveTokens
}

func (v *move) wake(then pc) pc {
	if v.m.mode == spinning || (!v.has(everyStoreWakes) && v.me.at != storeEpoch) {
		return then
	}
	v.me.then, v.me.peer = then, 0
	return loadSleepers
}

func (v *move) wakeIfSlept(then pc) pc {
	if !v.me.slept {
		return then
	}
	v.me.slept = false
	v.me.then, v.me.peer = then, 0
	return loadWaitOn
}

func (v *move) resume() pc {
	then := v.me.then
	v.me.then, v.me.peer = 0, 0
	return then
}

// leaveToken sends without blocking. The tokens of a rank that has ended do not count.
func (v *move) leaveToken() {
	q := &v.rank[v.peer()]
	if q.at == sleep || (q.at != end && v.has(tokensStay)) {
		q.token = true
	}
}

// Running the bodies of other ranks.

func (v *move) runAsLast() pc {
	switch {
	case v.name() == largeView && !v.has(resetThenOpen):
		return openJob
	case v.name() == largeView:
		return resetClaim
	case !v.has(runnerLooksAtFail):
		return v.runAll()
	}
	return loadFailRunning
}

// runAll runs the bodies of all, or announces that all have arrived: the last arriver looked at fail for
// them after that.
func (v *move) runAll() pc {
	if v.runForAll() {
		return runBodies
	}
	return v.complete()
}

func (v *move) complete() pc {
	if !v.has(completeThenWake) {
		return v.tokens(storeCompleted)
	}
	return storeCompleted
}

func (v *move) stopRunning() pc {
	if v.me.why != none {
		return v.giveUp()
	}
	v.me.helped = true
	return v.await(forCompleted)
}

// Failing, for the reason in why.

func (v *move) giveUp() pc {
	switch {
	case v.me.last:
		return lowerRunners
	case v.me.why == foundFail:
		return v.depart()
	}
	return casFail
}

// depart is the way out of a failed call.
func (v *move) depart() pc {
	v.me.why, v.me.wait, v.me.peer = none, 0, 0
	v.lookAfresh()
	if !v.exposes() && !v.has(outOfEveryCall) {
		return returnFailure
	}
	return storeOut
}

// nextTheft goes on with the next peer whose body this rank might steal, or marks this rank as done.
func (v *move) nextTheft() pc {
	if v.nextPeer() {
		return steal
	}
	return storeDone
}

func (v *move) cause() cause {
	c := cause{kind: v.me.why, by: uint8(v.r), call: v.seq()}
	switch c.kind {
	case lost, arguments:
		c.by = v.me.who
	case panicked:
		c.by = uint8(v.m.panicking(v.me.call))
	case closed:
		c.kind = lost
	}
	return c
}

// outsider reports whether this is not a rank, but a goroutine that only aborts.
func (v *move) outsider() bool { return v.r >= int(v.m.ranks) }
