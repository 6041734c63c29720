package syncmodel

// never is a value that events does not have: a wait that has it will look.
const never = -1

// A move is one rank about to take one step.
type move struct {
	*state
	m  *model
	r  int
	me *rank
}

func (v *move) has(r rule) bool { return v.m.without != r }

// The call that is being made.

func (v *move) seq() uint8    { return v.me.call + 1 }
func (v *move) bit() uint8    { return 1 << v.me.call }
func (v *move) name() byte    { return v.m.calls[v.r][v.me.call].name }
func (v *move) large() bool   { return v.name() == largeWindow }
func (v *move) folded() bool  { return v.m.mode == parked && v.name() != messages }
func (v *move) exposes() bool { return v.m.mode == parked || v.name() != inline }

func (v *move) publish() pc { return writeLine }

func (v *move) line(q int) *line {
	if !v.has(twoLines) {
		return &v.rank[q].line[0]
	}
	return &v.rank[q].line[v.seq()%2]
}

// nextCall ends a call: what was private to it is forgotten, its memory belongs to the user again.
func (v *move) nextCall() pc {
	me := v.me
	me.call++
	me.then, me.peer, me.wait, me.why = 0, 0, 0, none
	if int(me.call) == len(v.m.calls[v.r]) {
		me.token = false
	}
	me.slept, me.helped, me.folding = false, false, false
	me.exposed = 0
	if v.has(freshLook) {
		me.seen = never
	}
	return v.begin()
}

func (v *move) begin() pc {
	if int(v.me.call) < len(v.m.calls[v.r]) {
		return enter
	}
	switch v.m.ending[v.r] {
	case byAbort:
		return abort
	case byHanging:
		return end
	}
	if !v.has(wordThenEvent) {
		return v.announce(storeLeft)
	}
	return storeLeft
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

// Loops over peers, in rank order from the next rank on.

func (v *move) peer() int { return (v.r + 1 + int(v.me.peer)) % v.m.ranks() }

func (v *move) nextPeer() bool {
	v.me.peer++
	if int(v.me.peer) < v.m.ranks()-1 {
		return true
	}
	v.me.peer = 0
	return false
}

// Waiting.

func (v *move) await(w wait) pc {
	v.me.wait, v.me.peer = w, 0
	if v.has(freshLook) {
		v.me.seen = never
	}
	return test
}

func (v *move) reached() bool {
	q := &v.rank[v.peer()]
	switch v.me.wait {
	case forRefused:
		return q.refused.covers(v.seq()-v.me.owed, v.me.owed)
	case forEpoch:
		epoch := v.line(v.peer()).epoch
		v.checkEpoch(epoch)
		return epoch >= v.seq()
	case forDone:
		return q.done >= v.seq()
	case forOut:
		return q.done >= v.seq() || q.out >= v.seq()
	case forCompleted:
		return v.completed >= v.seq()
	default:
		return v.folders == 0
	}
}

// idle is where a rank has nothing to do but wait. A spinning rank would load the same values again and
// again: it is blocked until one of them changes.
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
	v.me.why = why
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
		return v.fails()
	}
	return v.advance()
}

// advance goes on with the next peer, or with what the rank waited for.
func (v *move) advance() pc {
	if v.me.wait.perPeer() && v.nextPeer() {
		if v.has(freshLook) {
			v.me.seen = never
		}
		if v.me.wait == forOut {
			return testBehind
		}
		return test
	}
	w := v.me.wait
	v.me.wait, v.me.peer = 0, 0
	if v.has(freshLook) {
		v.me.seen = never
	}
	switch w {
	case forRefused:
		return v.publish()
	case forEpoch:
		return compare
	case forCompleted:
		if !v.folded() {
			return v.enterWindow()
		}
		return v.succeeded()
	case forDone:
		return v.succeeded()
	case forOut:
		return v.failed()
	default:
		return lastTest
	}
}

func (v *move) enterWindow() pc {
	if !v.has(failBeatsReached) {
		return touch
	}
	return loadFail
}

// Waking. Each takes the step to go on with.

func (v *move) announce(then pc) pc {
	v.me.then, v.me.peer = then, 0
	return event
}

func (v *move) leaveTokens(then pc) pc {
	if v.m.mode == spinning {
		return then
	}
	v.me.then, v.me.peer = then, 0
	return tokens
}

func (v *move) wake(then pc) pc {
	if v.m.mode == spinning {
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

func (v *move) leaveToken() {
	q := &v.rank[v.peer()]
	if (v.has(tokensStay) && q.at != end) || q.at == sleep {
		q.token = true
	}
}

// Folding.

func (v *move) openJob() pc {
	if !v.has(resetThenOpen) {
		return openJob
	}
	return resetClaim
}

func (v *move) complete() pc {
	if !v.has(completeThenWake) {
		return v.leaveTokens(storeCompleted)
	}
	return storeCompleted
}

func (v *move) stopFolding() pc {
	if v.me.why == none {
		v.me.helped = true
		return v.await(forCompleted)
	}
	return v.fails()
}

// Failing.

func (v *move) fails() pc {
	if v.me.why == seen {
		return v.depart()
	}
	return casFail
}

// depart chooses the way out of a failed call. One that was not published has exposed nothing.
func (v *move) depart() pc {
	v.me.why, v.me.peer, v.me.wait = none, 0, 0
	if v.has(freshLook) {
		v.me.seen = never
	}
	if v.me.made != v.seq() || (!v.exposes() && !v.has(outOfEveryCall)) {
		return returnFailure
	}
	return storeOut
}

func (v *move) cause() cause {
	c := cause{kind: v.me.why, by: uint8(v.r), call: v.seq()}
	switch c.kind {
	case lost, arguments:
		c.by = uint8(v.peer())
	case panicked:
		c.by = uint8(v.m.panicking(v.me.call))
	}
	return c
}
