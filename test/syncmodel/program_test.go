package syncmodel

// A pc names a rank's next step.
type pc uint8

const (
	blocked pc = iota // the answer of a step that cannot be taken now

	enter
	startCall
	storeRejected
	returnRejection
	writeLine
	earlySleepers
	storeEpoch
	compare
	readPayload
	loadFail
	touch
	storeDone
	succeed

	claimOwn
	steal
	runStolen
	storeDoneFor
	testBodies

	test
	testOut
	poll
	lookClosed
	lookFail
	lookCalm
	lookDeparted
	lookWord
	lookRejected
	lookQuiet
	retest
	setWaitOn
	addSleeper
	sleep
	subSleeper
	clearWaitOn

	bumpEvents
	leaveTokens
	loadSleepers
	loadWaitOn
	wakeSleeper

	casFail
	storeOut
	testBehind
	returnFailure

	arrive
	raiseRunners
	loadFailRunning
	runBodies
	storeCompleted
	lowerCompleted
	resetClaim
	resetFinished
	openJob
	lookJob
	lookClaim
	joinRunners
	loadFailClaiming
	claimBody
	runBody
	addFinished
	lowerRunners
	loadFailLowered
	lastTest

	abort
	closeRank
	closeDeparted
	storeDeparted
	end
)

// An instruction is one step: in words, for traces (PEER is the peer it is about, LOOK the one it looks at, WAIT what is waited for,
// WHY what interrupted), and in deed: it changes the state and answers with the next step.
type instruction struct {
	does string
	step func(*move) pc
}

// program is what every rank executes. A step is one load, store or read-modify-write of shared memory and
// what private memory makes of it.
var program = [...]instruction{

	// A call on a failed group consumes nothing and returns the first cause; one on a closed rank does not
	// start. Close may come at any time, also between this and the next step.
	enter: {"enters: loads closed and fail", func(v *move) pc {
		switch {
		case v.me.closed:
			return v.gone()
		case v.fail.kind != none:
			v.me.verdict = v.fail
			return v.failed()
		case v.name() == rejection:
			return storeRejected
		case v.closable():
			return startCall
		}
		return v.startCall()
	}},
	// What ends the call from here on is about this call: a rank that gives it up tests whether it was completed.
	startCall: {"takes the call's number; loads closed", func(v *move) pc {
		if !v.me.closed {
			return v.startCall()
		}
		if v.has(numberFirst) {
			v.me.number = v.seq()
		}
		v.me.why = closed
		return v.giveUp()
	}},

	// A rejected call returns without waiting, so it must not touch the lines: a peer may still be reading
	// the call before. It leaves word instead, and the next call settles.
	storeRejected: {"rejects its arguments: stores rejected", func(v *move) pc {
		v.me.number = v.seq()
		if v.me.owed == 0 {
			v.me.rejected = run{first: v.seq()}
		}
		v.me.rejected.count++
		v.me.owed++
		return v.announce(returnRejection)
	}},
	returnRejection: {"returns: rejected", func(v *move) pc {
		v.me.rejections |= v.bit()
		v.checkAgreement()
		return v.nextCall()
	}},

	// The line of call s may be written anew for s+2: all epochs s+1 were seen, and each was stored after
	// everything of s had been read.
	writeLine: {"writes its line", func(v *move) pc {
		l := v.line(v.r)
		l.call, l.name = v.seq(), v.name()
		if !v.has(storeThenSleepers) {
			return earlySleepers
		}
		return storeEpoch
	}},
	earlySleepers: {"loads sleepers, too early", func(v *move) pc {
		v.me.slept = v.sleepers != 0
		return storeEpoch
	}},
	storeEpoch: {"stores its epoch", func(v *move) pc {
		v.line(v.r).epoch = v.seq()
		v.me.made = v.seq()
		if v.m.mode == parked {
			return arrive
		}
		v.me.owed = 0
		if v.exposes() {
			v.me.exposed = v.seq()
		}
		v.await(forEpoch)
		if !v.has(storeThenSleepers) {
			return v.wakeIfSlept(test)
		}
		return v.wake(test)
	}},

	// All have arrived. If the calls differ, every rank that gets here sees it, and none goes on.
	compare: {"reads the hash of PEER", func(v *move) pc {
		switch {
		case v.readLine(v.peer()) != v.name():
			v.me.why = mismatch
			return v.giveUp()
		case v.nextPeer():
			return compare
		case v.me.last:
			return v.runAsLast()
		case v.showsPayloads():
			return readPayload
		case !v.has(failBeatsReached):
			return touch
		}
		return loadFail
	}},
	// The payloads are here, and no other memory is touched: nothing that happens now may end the call.
	// A look at fail would find the failure of a later call, made by ranks that succeeded in this one. A call
	// that might have touched memory then stores done, for leavers that wait for this rank, and waits for nobody.
	readPayload: {"reads the payload of PEER", func(v *move) pc {
		if !v.has(payloadsSuffice) && v.fail.kind != none {
			v.me.verdict = v.fail
			v.me.why = foundFail
			return v.giveUp()
		}
		v.readLine(v.peer())
		switch {
		case v.nextPeer():
			return readPayload
		case v.exposes():
			return storeDone
		}
		return v.succeeded()
	}},

	// The one place where failure beats reached. A leaver stores fail and then loads my epoch; I stored my
	// epoch and now load fail. Either it knows that I may come, or I know that I must not.
	loadFail: {"loads fail before it touches its peers' memory", func(v *move) pc {
		if v.fail.kind != none {
			v.me.verdict = v.fail
			v.me.why = foundFail
			return v.giveUp()
		}
		if v.claims() {
			return claimOwn
		}
		return touch
	}},
	touch: {"runs its body: touches its peers' memory", func(v *move) pc {
		v.touchAll()
		if v.m.panicking(v.me.call) == v.r {
			v.me.why = panicked
			return v.giveUp()
		}
		switch {
		case v.claims() && !v.has(stealThenDone):
			v.me.done = v.seq() // in the same step, to keep the model small
			return steal
		case v.claims():
			return steal
		}
		return storeDone
	}},
	storeDone: {"stores done", func(v *move) pc {
		v.me.done = v.seq()
		if v.showsPayloads() || !v.has(completionSync) {
			return v.wake(succeed)
		}
		return v.wake(v.await(forDone))
	}},
	succeed: {"returns: success", (*move).succeeded},

	// Bodies of ranks that have arrived, but sleep. A rank that claims a body runs it; one that finds its own
	// claimed has nothing left to do.
	claimOwn: {"claims its own body: CAS on claimed", func(v *move) pc {
		if v.me.claimed == v.seq() {
			return v.await(forBodies)
		}
		v.me.claimed = v.seq()
		return touch
	}},
	steal: {"tries to claim the body of PEER: CAS on its claimed", func(v *move) pc {
		q := &v.rank[v.peer()]
		if q.claimed == v.seq() && v.has(claimsAreCAS) {
			return v.nextTheft()
		}
		q.claimed = v.seq()
		return runStolen
	}},
	runStolen: {"runs the body of PEER", func(v *move) pc {
		v.touchAll()
		return storeDoneFor
	}},
	storeDoneFor: {"stores done of PEER, and leaves a token for every rank", func(v *move) pc {
		v.rank[v.peer()].done = v.seq()
		if v.m.mode == sleeping {
			for q := range v.rank[:v.m.ranks] {
				if q != v.r {
					v.rank[q].token = true
				}
			}
		}
		return v.nextTheft()
	}},
	// While a rank slept, peers may have completed the call, and the group have failed in the next. Or a rank that
	// was done gave up, and then the last one was done.
	testBodies: {"tests once more whether all ranks are done", func(v *move) pc {
		for _, q := range v.rank[:v.m.ranks] {
			if q.done < v.me.number {
				return v.failed()
			}
		}
		return v.succeeded()
	}},

	// A wait. What interrupts it only interrupts: the test decides, so that a rank that has all it needs
	// succeeds, whatever its peers did next.
	test: {"tests WAIT", func(v *move) pc {
		switch {
		case v.me.wait == forOut && v.rank[v.peer()].done < v.seq():
			return testOut
		case v.reached():
			return v.endWait()
		case v.me.wait == forCompleted && v.name() == largeView && !v.me.helped:
			return lookJob
		case v.me.wait.interruptible():
			return poll
		}
		return v.idle()
	}},
	testOut: {"tests whether PEER is out, or dead", func(v *move) pc {
		q := &v.rank[v.peer()]
		if q.out >= v.seq() || q.dead && v.has(deadAreOut) {
			return v.endWait()
		}
		return v.idle()
	}},
	// After a sleep that timed out it looks even if events has not changed: a rank that stored the awaited word,
	// or a failure, may have died before it bumped events.
	poll: {"loads events", func(v *move) pc {
		if v.me.seen == int8(v.events) && !v.me.suspects {
			return v.idle()
		}
		v.me.seen = int8(v.events)
		if v.closable() {
			return lookClosed
		}
		return lookFail
	}},
	lookClosed: {"looks at its own closed", func(v *move) pc {
		if v.me.closed {
			return v.interrupt(closed)
		}
		return lookFail
	}},
	lookFail: {"looks at fail", func(v *move) pc {
		if v.fail.kind != none {
			v.me.verdict = v.fail
			return v.interrupt(foundFail)
		}
		return lookCalm
	}},
	// The wait is in vain whoever is missing, so it looks at all peers; unless it did so after the last event,
	// and nothing that had happened by then concerns this call or one to come.
	lookCalm: {"loads events once more, whether anything has happened since it looked at all", func(v *move) pc {
		if v.me.calm == int8(v.events) && !v.me.suspects {
			return test
		}
		v.me.before, v.me.quiet, v.me.look = int8(v.events), true, 0
		if !v.has(looksAtAll) {
			v.me.look = v.me.peer
		}
		return lookDeparted
	}},
	// Departures and deaths are loaded before the word that they may end the wait for: what a rank did before it
	// departed counts. And rejected is loaded after departed and judged before it: a rank that rejected this call and then left
	// is known to have rejected it.
	lookDeparted: {"looks at departed of LOOK, and at its lock if it suspects anything", func(v *move) pc {
		if !v.has(departedThenWord) {
			if v.lookReached() {
				return v.lookOn()
			}
			return lookWord
		}
		v.lookGone()
		if v.me.sawDeparted && !v.has(rejectedBeatsDeparted) {
			return v.interrupt(lost)
		}
		return lookWord
	}},
	lookWord: {"tests whether LOOK has nevertheless done what it waits for", func(v *move) pc {
		if !v.has(departedThenWord) {
			v.lookGone()
		} else if v.lookReached() {
			v.me.sawDeparted = false
			return lookQuiet
		}
		if v.me.wait == forEpoch || v.me.wait == forCompleted {
			return lookRejected
		}
		if v.me.sawDeparted {
			v.me.sawDeparted = false
			return v.interrupt(lost)
		}
		return lookQuiet
	}},
	lookRejected: {"looks at rejected of LOOK", func(v *move) pc {
		departed := v.me.sawDeparted
		v.me.sawDeparted = false
		switch {
		case v.rank[v.looked()].rejected.covers(v.seq(), 1):
			return v.interrupt(arguments)
		case departed:
			return v.interrupt(lost)
		}
		return lookQuiet
	}},
	lookQuiet: {"looks whether LOOK has left, or rejected this call or one to come", func(v *move) pc {
		q := &v.rank[v.looked()]
		if v.has(calmIsQuiet) && (q.departed || q.rejected.first+q.rejected.count > v.seq()) {
			v.me.quiet = false
		}
		return v.lookOn()
	}},
	retest: {"is interrupted (WHY): tests once more WAIT", func(v *move) pc {
		if v.reached() {
			v.me.why = none
		}
		return v.endWait()
	}},

	// Asleep. The sleeper stores its flags and then tests; a peer stores what is waited for and then loads
	// the flags. Either the sleeper sees the store, or the peer sees the sleeper.
	setWaitOn: {"stores waitOn = PEER", func(v *move) pc {
		v.me.waitOn = uint8(v.peer()) + 1
		return addSleeper
	}},
	addSleeper: {"adds itself to sleepers", func(v *move) pc {
		v.sleepers++
		v.me.flagged = true
		if !v.has(flagThenTest) {
			return sleep
		}
		return test
	}},
	sleep: {"receives a token", func(v *move) pc {
		if !v.me.token {
			return blocked
		}
		v.me.token = false
		return test
	}},
	subSleeper: {"takes itself out of sleepers", func(v *move) pc {
		v.sleepers--
		v.me.flagged = false
		return clearWaitOn
	}},
	clearWaitOn: {"clears waitOn", func(v *move) pc {
		v.me.waitOn = 0
		return v.afterWait()
	}},

	// Events are rare: they wake all ranks, flagged or not.
	bumpEvents: {"bumps events", func(v *move) pc {
		v.bump()
		return v.tokens(v.resume())
	}},
	leaveTokens: {"leaves a token for PEER", func(v *move) pc {
		v.leaveToken()
		if v.nextPeer() {
			return leaveTokens
		}
		return v.resume()
	}},
	// Stores of epoch, done and out wake the ranks that sleep for this rank.
	loadSleepers: {"loads sleepers", func(v *move) pc {
		v.me.slept = v.sleepers != 0
		return v.wakeIfSlept(v.resume())
	}},
	loadWaitOn: {"loads waitOn of PEER", func(v *move) pc {
		switch {
		case v.rank[v.peer()].waitOn == uint8(v.r)+1:
			return wakeSleeper
		case v.nextPeer():
			return loadWaitOn
		}
		return v.resume()
	}},
	wakeSleeper: {"leaves a token for PEER", func(v *move) pc {
		v.leaveToken()
		if v.nextPeer() {
			return loadWaitOn
		}
		return v.resume()
	}},

	// Failing. All ranks return the first cause.
	casFail: {"fails the group (WHY): CAS on fail", func(v *move) pc {
		cause := v.cause()
		won := v.fail.kind == none
		if won {
			v.fail = cause
		}
		v.me.verdict = v.fail
		if !v.has(firstCause) {
			v.me.verdict = cause
		}
		if cause.kind == cancelled || cause.kind == panicked || v.me.why == closed {
			v.noteTorn(v.me.call)
		}
		then := v.depart()
		if won {
			return v.announce(then)
		}
		return then
	}},
	// out is for peers that leave early as well: they would wait for each other.
	storeOut: {"stores out", func(v *move) pc {
		v.me.out = v.me.number
		switch {
		case v.runForAll() && !v.has(leaverWaitsForRunners):
			return v.wake(lastTest)
		case v.runForAll():
			return v.wake(v.await(forRunners))
		case v.exposes() && v.me.made == v.seq() && v.has(earlyLeave):
			v.await(forOut)
			return v.wake(testBehind)
		case v.claims() && v.has(leaverTestsBodies):
			return v.wake(testBodies)
		}
		return v.wake(returnFailure)
	}},
	testBehind: {"tests whether PEER has not published this call, and so will find fail", func(v *move) pc {
		if v.line(v.peer()).epoch < v.seq() {
			return v.advance()
		}
		return test
	}},
	returnFailure: {"returns the failure", (*move).failed},

	// Parked mode: the last to arrive runs the call for all. The same pair again: it raises runners and then
	// loads fail, a leaver stores fail and then loads runners.
	arrive: {"adds its calls to arrived", func(v *move) pc {
		v.arrived++
		if v.has(countsRejected) {
			v.arrived += v.me.owed
		}
		v.me.owed = 0
		v.me.exposed = v.seq()
		if v.arrived == v.m.ranks*v.seq() {
			return raiseRunners
		}
		return v.await(forCompleted)
	}},
	raiseRunners: {"is last: raises runners", func(v *move) pc {
		v.runners++
		v.me.last = true
		return compare
	}},
	loadFailRunning: {"loads fail before it touches its peers' memory", func(v *move) pc {
		switch {
		case v.fail.kind != none:
			v.me.verdict = v.fail
			v.me.why = foundFail
			return v.giveUp()
		}
		return v.runAll()
	}},
	runBodies: {"runs every rank's body", func(v *move) pc {
		v.touchAll()
		if v.m.panicking(v.me.call) >= 0 {
			v.me.why = panicked
			return v.giveUp()
		}
		return v.complete()
	}},
	storeCompleted: {"stores completed", func(v *move) pc {
		v.completed = v.seq()
		return lowerCompleted
	}},
	lowerCompleted: {"lowers runners", func(v *move) pc {
		v.runners--
		v.me.last = false
		then := succeed
		if !v.runForAll() {
			then = touch
		}
		if !v.has(completeThenWake) {
			return then
		}
		return v.tokens(then)
	}},

	// A large call is a job: a rank that wakes claims bodies. All ranks in here are participants of the call,
	// so none is when the next last arriver resets the counters.
	resetClaim: {"resets claim", func(v *move) pc {
		v.claim = 0
		return resetFinished
	}},
	resetFinished: {"resets finished", func(v *move) pc {
		v.finished = 0
		if !v.has(resetThenOpen) {
			return v.tokens(loadFailClaiming)
		}
		return openJob
	}},
	openJob: {"opens the job", func(v *move) pc {
		v.job = v.seq()
		if !v.has(resetThenOpen) {
			return resetClaim
		}
		return v.tokens(loadFailClaiming)
	}},
	lookJob: {"looks at job", func(v *move) pc {
		if v.job == v.seq() {
			return lookClaim
		}
		return poll
	}},
	lookClaim: {"looks at claim", func(v *move) pc {
		switch {
		case v.claim >= v.m.ranks:
			return poll
		case !v.has(helpersAreRunners):
			return loadFailClaiming
		}
		return joinRunners
	}},
	joinRunners: {"helps: raises runners", func(v *move) pc {
		v.runners++
		return loadFailClaiming
	}},
	loadFailClaiming: {"loads fail before it claims a body", func(v *move) pc {
		if v.fail.kind != none && v.has(claimersLookAtFail) {
			return addFinished
		}
		return claimBody
	}},
	claimBody: {"claims a body", func(v *move) pc {
		v.claim++
		if v.claim > v.m.ranks {
			return addFinished
		}
		return runBody
	}},
	runBody: {"runs the body it claimed", func(v *move) pc {
		v.touchAll()
		v.me.ran++
		return loadFailClaiming
	}},
	addFinished: {"adds the bodies it ran to finished", func(v *move) pc {
		v.finished += v.me.ran
		v.me.ran = 0
		helper := !v.me.last
		switch {
		case v.has(lastFinisherCompletes) && v.finished == v.m.ranks:
			return v.complete()
		case !v.has(lastFinisherCompletes) && !helper:
			return v.complete()
		case !v.has(helpersAreRunners) && helper:
			return v.stopRunning()
		}
		return lowerRunners
	}},

	// A rank stops without having completed the call: on a failure, or because others still run bodies.
	lowerRunners: {"lowers runners", func(v *move) pc {
		v.runners--
		v.me.last = false
		if v.runners > 0 || !v.has(loweringWakes) {
			return v.stopRunning()
		}
		return loadFailLowered
	}},
	loadFailLowered: {"loads fail: leavers may be waiting for runners", func(v *move) pc {
		then := v.stopRunning()
		if v.fail.kind != none {
			return v.tokens(then)
		}
		return then
	}},
	// While a leaver waited for runners, the call may have been completed.
	lastTest: {"tests once more whether the call was completed", func(v *move) pc {
		if v.completed >= v.seq() && v.has(leaverTestsCompleted) {
			return v.succeeded()
		}
		return v.failed()
	}},

	// The end of a script.
	abort: {"aborts: CAS on fail", func(v *move) pc {
		if v.fail.kind != none {
			return end
		}
		v.fail = cause{kind: aborted, by: uint8(v.r), call: v.seq()}
		if v.outsider() {
			v.noteTorn(v.goingOn())
		}
		return v.announce(end)
	}},
	// Another goroutine closes rank 0, whatever it is doing.
	closeRank: {"closes rank 0: stores its closed", func(v *move) pc {
		v.rank[0].closed = true
		v.noteTorn(v.goingOn())
		return closeDeparted
	}},
	closeDeparted: {"stores departed of rank 0", func(v *move) pc {
		v.rank[0].departed = true
		return v.announce(end)
	}},
	storeDeparted: {"leaves: stores departed", func(v *move) pc {
		v.me.departed = true
		if !v.has(wordThenEvent) {
			return end
		}
		return v.announce(end)
	}},
	end: {"", func(*move) pc { return blocked }},
}
