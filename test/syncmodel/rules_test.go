package syncmodel

// A rule is one clause of the protocol. A model can leave one out; then some property must break.
type rule uint8

const (
	nothing rule = iota // left out: the complete protocol

	settles
	twoLines
	freshLook
	secondTest
	rejectedBeatsDeparted
	wordThenEvent
	firstCause

	payloadsSuffice
	failBeatsReached
	completionSync
	earlyLeave
	outOfEveryCall

	storeThenSleepers
	everyStoreWakes
	flagThenTest
	tokensStay

	countsRejected
	runnerLooksAtFail
	leaverWaitsForRunners
	loweringWakes
	leaverTestsCompleted
	completeThenWake
	resetThenOpen
	helpersAreRunners
	claimersLookAtFail
	lastFinisherCompletes

	claimsAreCAS
	stealThenDone
	leaverTestsBodies
	leaverTestsDone

	numberFirst

	looksAtAll
	departedThenWord
	calmBefore
	calmIsQuiet

	sleepersSuspect
	deadAreOut

	rules
)

var ruleWords = [rules]string{
	settles:               "a rank that rejected calls publishes when every peer has rejected the same calls",
	twoLines:              "consecutive calls alternate between two lines",
	freshLook:             "every wait looks at fail, departed and rejected once before it relies on an unchanged events",
	secondTest:            "an interrupted wait tests once more before it fails",
	rejectedBeatsDeparted: "rejected is loaded after departed and judged before it",
	wordThenEvent:         "events is bumped after the word that it announces was stored",
	firstCause:            "every rank returns the cause that won the CAS",

	payloadsSuffice:  "a rank that reads payloads checks nothing else, also in a call that might have touched memory",
	failBeatsReached: "a rank that published and reached all peers loads fail before it touches their memory, and only then",
	completionSync:   "a call that exposed memory succeeds when all ranks are done",
	earlyLeave:       "a failed call that exposed memory waits for every peer that may have entered",
	outOfEveryCall:   "every failed call that was published stores out, even if it exposed nothing",

	storeThenSleepers: "a rank stores its epoch before it loads sleepers",
	everyStoreWakes:   "done and out wake the ranks that sleep for this rank, as the epoch does",
	flagThenTest:      "a rank tests once more after it has flagged itself as asleep",
	tokensStay:        "a token stays in the channel for a rank that is not asleep yet",

	countsRejected:        "arrived counts rejected calls as well",
	runnerLooksAtFail:     "the last arriver loads fail after it raises runners and before it touches memory",
	leaverWaitsForRunners: "a failed call returns when runners is 0",
	loweringWakes:         "a rank that lowers runners to 0 then loads fail and, if it is set, leaves tokens",
	leaverTestsCompleted:  "when runners is 0 a failed call tests once more whether it was completed",
	completeThenWake:      "the last arriver stores completed before it leaves tokens",
	resetThenOpen:         "claim and finished are reset before the job is opened",
	helpersAreRunners:     "a helper raises runners before it runs bodies",
	claimersLookAtFail:    "fail is loaded before every claim",
	claimsAreCAS:          "a body is claimed by one rank only",
	stealThenDone:         "a rank is done when it has run the last body that it claimed",
	leaverTestsBodies:     "a failed call tests once more whether all bodies were run",
	leaverTestsDone:       "a failed call whose peers are all done or out tests once more whether all ranks are done",
	looksAtAll:            "a wait looks at all peers, whichever it waits for",
	departedThenWord:      "departed of a peer, and its lock, are loaded before the word of that peer",
	calmBefore:            "a look at all peers covers the events that were loaded before it",
	calmIsQuiet:           "looks at all peers are left out only after one that found that none has left or rejected this call or a later one",
	sleepersSuspect:       "a sleep is bounded, and after it timed out a rank looks at everything and at the others' locks",
	deadAreOut:            "a failed call does not wait for the dead",
	numberFirst:           "a call has its number before anything, also a Close, can end it",
	lastFinisherCompletes: "exactly the rank that brings finished to the number of ranks completes the call",
}
