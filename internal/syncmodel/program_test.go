package syncmodel

// A pc names the next atomic step of a rank: one load, store or read-modify-write of shared memory.
type pc uint8

const (
	blocked pc = iota // the answer of a step that cannot be taken now

	// A call, as far as all modes share it.
	enter
	storeRefused
	writeLine
	earlySleepers // only without storeThenSleepers
	storeEpoch
	compare
	succeed
	returnRefusal
	returnFailure

	// Waiting.
	test
	testOut
	poll
	lookFail
	lookLeft
	lookRefused
	retest
	setWaitOn
	addSleeper
	sleep
	subSleeper
	clearWaitOn

	// Waking others.
	event
	tokens
	loadSleepers
	loadWaitOn
	wakeToken

	// Flat: every rank runs its own body.
	readPayload
	loadFail
	touch
	storeDone
	storeOut
	testBehind

	// Parked: the last arriver runs everybody's.
	arrive
	raiseFolders
	loadFailFolding
	runBodies
	storeCompleted
	lowerCompleted
	resetClaim
	resetFinished
	openJob
	lookJob
	lookClaim
	joinFolders
	loadFailClaiming
	claimBody
	runBody
	addFinished
	lowerFolders
	loadFailLowered
	lastTest

	// Failing, leaving.
	casFail
	abort
	storeLeft
	end
)

// An instruction is one step in words (PEER stands for the peer it is about) and in deed: it changes the
// state and answers with the next step.
type instruction struct {
	does string
	step func(*move) pc
}

// program is what every rank executes. A step that loads one word may act on private memory besides;
// nothing else is merged, but that a rank which returns goes straight to its next call.
var program = [...]instruction{

	// Calls on a failed group consume nothing and return its first cause.
	enter: {"begins the call: loads fail", func(v *move) pc {
		switch {
		case v.fail.kind != none:
			v.me.verdict = v.fail
			return v.failed()
		case v.name() == refusal:
			return storeRefused
		case v.me.owed > 0 && v.has(settles):
			return v.await(forRefused)
		}
		return v.publish()
	}},

	// A refused call never touches the lines: its peers may still read the call before it.
	storeRefused: {"refuses the call: stores refused", func(v *move) pc {
		if v.me.owed == 0 {
			v.me.refused = run{first: v.seq()}
		}
		v.me.refused.count++
		v.me.owed++
		return v.announce(returnRefusal)
	}},
	returnRefusal: {"returns: refused", func(v *move) pc {
		v.me.refusals |= v.bit()
		v.checkAgreement()
		return v.nextCall()
	}},

	// The line of call s may be written anew for s+2: all epochs s+1 were seen, and each was stored after
	// everything of s had been read.
	writeLine: {"writes hash, payload and fingerprint into its line", func(v *move) pc {
		l := v.line(v.r)
		l.call, l.name = v.seq(), v.name()
		if !v.has(storeThenSleepers) {
			return earlySleepers
		}
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
		then := v.await(forEpoch)
		if !v.has(storeThenSleepers) {
			return v.wakeIfSlept(then)
		}
		return v.wake(then)
	}},

	// All have arrived: everybody compares, everybody sees a difference, nobody goes on.
	compare: {"reads the hash of PEER", func(v *move) pc {
		if v.readLine(v.peer()) != v.name() {
			v.me.why = mismatch
			if v.me.folding {
				return lowerFolders
			}
			return casFail
		}
		if v.nextPeer() {
			return compare
		}
		switch {
		case v.me.folding && v.large():
			return v.openJob()
		case v.me.folding && !v.has(folderLooksAtFail):
			return runBodies
		case v.me.folding:
			return loadFailFolding
		case !v.exposes():
			return readPayload
		}
		return v.enterWindow()
	}},
	succeed:       {"returns: success", (*move).succeeded},
	returnFailure: {"returns the failure", (*move).failed},

	// The wait. What interrupts it only interrupts: the condition has the last word, so that a rank which
	// has been given all it needs succeeds, whatever its peers did afterwards.
	test: {"tests FOR", func(v *move) pc {
		switch {
		case v.me.wait == forOut:
			if v.rank[v.peer()].done < v.seq() {
				return testOut
			}
		case !v.reached():
			switch {
			case v.me.wait == forCompleted && v.large() && !v.me.helped:
				return lookJob
			case v.me.wait.interruptible():
				return poll
			}
			return v.idle()
		}
		return v.endWait()
	}},
	testOut: {"tests whether PEER is out", func(v *move) pc {
		if v.rank[v.peer()].out < v.seq() {
			return v.idle()
		}
		return v.endWait()
	}},
	poll: {"loads events", func(v *move) pc {
		if v.me.seen == int8(v.events) {
			return v.idle()
		}
		v.me.seen = int8(v.events)
		return lookFail
	}},
	lookFail: {"loads fail, for events changed", func(v *move) pc {
		if v.fail.kind != none {
			v.me.verdict = v.fail
			return v.interrupt(seen)
		}
		return lookLeft
	}},
	// left is loaded before refused: a peer that refused this call and then left did not just leave.
	lookLeft: {"loads left of PEER", func(v *move) pc {
		v.me.sawLeft = v.rank[v.peer()].left
		if v.me.sawLeft && !v.has(refusedBeatsLeft) {
			return v.interrupt(lost)
		}
		return lookRefused
	}},
	lookRefused: {"loads refused of PEER", func(v *move) pc {
		left := v.me.sawLeft
		v.me.sawLeft = false
		switch {
		case v.rank[v.peer()].refused.covers(v.seq(), 1):
			return v.interrupt(arguments)
		case left:
			return v.interrupt(lost)
		case v.me.wait == forCompleted && v.nextPeer(): // nobody in particular is waited for
			return lookLeft
		}
		return test
	}},
	retest: {"is interrupted (WHY): tests once more FOR", func(v *move) pc {
		if v.reached() {
			v.me.why = none
		}
		return v.endWait()
	}},

	// Asleep. The sleeper flags itself and then tests; its peer stores and then loads the flag.
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

	// Events are off the hot path: they reach every rank, flagged or not.
	event: {"bumps events", func(v *move) pc {
		v.events++
		return v.leaveTokens(v.resume())
	}},
	tokens: {"leaves a token for PEER", func(v *move) pc {
		v.leaveToken()
		if v.nextPeer() {
			return tokens
		}
		return v.resume()
	}},
	// Stores of epoch, done and out wake those who wait for this rank.
	loadSleepers: {"loads sleepers", func(v *move) pc {
		v.me.slept = v.sleepers != 0
		return v.wakeIfSlept(v.resume())
	}},
	earlySleepers: {"loads sleepers", func(v *move) pc {
		v.me.slept = v.sleepers != 0
		return storeEpoch
	}},
	loadWaitOn: {"loads waitOn of PEER", func(v *move) pc {
		if v.rank[v.peer()].waitOn == uint8(v.r)+1 {
			return wakeToken
		}
		if v.nextPeer() {
			return loadWaitOn
		}
		return v.resume()
	}},
	wakeToken: {"leaves a token for PEER", func(v *move) pc {
		v.leaveToken()
		if v.nextPeer() {
			return loadWaitOn
		}
		return v.resume()
	}},

	// An inline call ends here: it read everything before it can store the next epoch.
	readPayload: {"reads the payload of PEER", func(v *move) pc {
		v.readLine(v.peer())
		if v.nextPeer() {
			return readPayload
		}
		return v.succeeded()
	}},

	// The one place where failure beats reached. A leaver stores fail and then loads my epoch; I stored
	// my epoch and now load fail: it sees that I may enter, or I see that I must not.
	loadFail: {"loads fail before it touches anybody's memory", func(v *move) pc {
		if v.fail.kind != none {
			v.me.verdict = v.fail
			return v.depart()
		}
		return touch
	}},
	touch: {"runs its body: touches everybody's memory", func(v *move) pc {
		v.touchAll()
		if v.m.panicking(v.me.call) == v.r {
			v.me.why = panicked
			return casFail
		}
		return storeDone
	}},
	storeDone: {"stores done", func(v *move) pc {
		v.me.done = v.seq()
		if !v.has(completionSync) {
			return v.wake(succeed)
		}
		return v.wake(v.await(forDone))
	}},

	// Early leave. out is for peers that leave too, or they would wait for each other.
	storeOut: {"stores out", func(v *move) pc {
		v.me.out = v.seq()
		switch {
		case v.folded() && !v.has(leaverWaitsForFolders):
			return v.wake(lastTest)
		case v.folded():
			return v.wake(v.await(forFolders))
		case !v.exposes() || !v.has(earlyLeave):
			return v.wake(returnFailure)
		}
		v.await(forOut)
		return v.wake(testBehind)
	}},
	testBehind: {"tests whether PEER has not published this call and so will see fail", func(v *move) pc {
		if v.line(v.peer()).epoch < v.seq() {
			return v.advance()
		}
		return test
	}},

	// Parked mode. All ranks sleep but the last to arrive, which runs the call for everybody. Its check is
	// the same pair as above: a leaver stores fail and then loads folders.
	arrive: {"adds its calls to arrived", func(v *move) pc {
		v.arrived++
		if v.has(countsRefused) {
			v.arrived += v.me.owed
		}
		v.me.owed = 0
		v.me.exposed = v.seq()
		if v.arrived == uint8(v.m.ranks())*v.seq() {
			return raiseFolders
		}
		return v.await(forCompleted)
	}},
	raiseFolders: {"is last: raises folders", func(v *move) pc {
		v.folders++
		v.me.folding = true
		return compare
	}},
	loadFailFolding: {"loads fail before it touches anybody's memory", func(v *move) pc {
		switch {
		case v.fail.kind != none:
			v.me.verdict = v.fail
			v.me.why = seen
			return lowerFolders
		case !v.folded():
			return v.complete()
		}
		return runBodies
	}},
	runBodies: {"runs every rank's body", func(v *move) pc {
		v.touchAll()
		if v.m.panicking(v.me.call) >= 0 {
			v.me.why = panicked
			return lowerFolders
		}
		return v.complete()
	}},
	storeCompleted: {"stores completed", func(v *move) pc {
		v.completed = v.seq()
		return lowerCompleted
	}},
	lowerCompleted: {"lowers folders", func(v *move) pc {
		v.folders--
		v.me.folding = false
		then := succeed
		if !v.folded() {
			then = touch
		}
		if !v.has(completeThenWake) {
			return then
		}
		return v.leaveTokens(then)
	}},

	// A large call is a job: whoever wakes claims bodies. A helper is a folder like the last arriver, and
	// the one whose bodies were the last to be finished completes the call. All of them are participants of
	// it, so nobody can be in here when the next last arriver resets the counters.
	resetClaim: {"resets claim", func(v *move) pc {
		v.claim = 0
		return resetFinished
	}},
	resetFinished: {"resets finished", func(v *move) pc {
		v.finished = 0
		if !v.has(resetThenOpen) {
			return v.leaveTokens(loadFailClaiming)
		}
		return openJob
	}},
	openJob: {"opens the job", func(v *move) pc {
		v.job = v.seq()
		if !v.has(resetThenOpen) {
			return resetClaim
		}
		return v.leaveTokens(loadFailClaiming)
	}},
	lookJob: {"loads job", func(v *move) pc {
		if v.job == v.seq() {
			return lookClaim
		}
		return poll
	}},
	lookClaim: {"loads claim", func(v *move) pc {
		switch {
		case v.claim >= uint8(v.m.ranks()):
			return poll
		case !v.has(helpersAreFolders):
			return loadFailClaiming
		}
		return joinFolders
	}},
	joinFolders: {"helps: raises folders", func(v *move) pc {
		v.folders++
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
		if v.claim > uint8(v.m.ranks()) {
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
		helper := !v.me.folding
		v.finished += v.me.ran
		v.me.ran = 0
		switch {
		case !v.has(lastFinisherCompletes) && !helper:
			return v.complete()
		case v.has(lastFinisherCompletes) && v.finished == uint8(v.m.ranks()):
			return v.complete()
		case !v.has(helpersAreFolders) && helper:
			return v.stopFolding()
		}
		return lowerFolders
	}},

	// One that gives up folding, or has run what it claimed, wakes those who wait for folders.
	lowerFolders: {"lowers folders", func(v *move) pc {
		v.folders--
		v.me.folding = false
		if v.folders > 0 || !v.has(loweringWakes) {
			return v.stopFolding()
		}
		return loadFailLowered
	}},
	loadFailLowered: {"loads fail, for leavers may wait for folders", func(v *move) pc {
		then := v.stopFolding()
		if v.fail.kind != none {
			return v.leaveTokens(then)
		}
		return then
	}},
	// While a leaver waited for folders the call may have been completed.
	lastTest: {"tests once more whether the call was completed", func(v *move) pc {
		if v.completed >= v.seq() && v.has(leaverTestsCompleted) {
			return v.succeeded()
		}
		return v.failed()
	}},

	// The first cause is everybody's.
	casFail: {"fails the group (WHY): CAS on fail", func(v *move) pc {
		mine := v.cause()
		if (mine.kind == cancelled || mine.kind == panicked) && !v.folded() {
			v.me.tore |= v.bit()
		}
		won := v.fail.kind == none
		if won {
			v.fail = mine
		}
		v.me.verdict = v.fail
		if !v.has(firstCause) {
			v.me.verdict = mine
		}
		then := v.depart()
		if won {
			return v.announce(then)
		}
		return then
	}},
	abort: {"its worker returns an error: CAS on fail", func(v *move) pc {
		if v.fail.kind != none {
			return end
		}
		v.fail = cause{kind: aborted, by: uint8(v.r), call: v.seq()}
		return v.announce(end)
	}},
	storeLeft: {"leaves: stores left", func(v *move) pc {
		v.me.left = true
		if !v.has(wordThenEvent) {
			return end
		}
		return v.announce(end)
	}},
	end: {"", func(*move) pc { return blocked }},
}
