package transporttest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
)

// A group that takes longer than this for one script is reported as hanging; the longest
// script takes about a second. Each report halves the time for the checks that follow, so
// that a badly broken transport does not cost an hour.
const (
	longPatience  = 20 * time.Second
	shortPatience = 2 * time.Second
)

// shortRanks is the size of the largest group with -short.
const shortRanks = 3

// Test runs all checks on a transport, each as a subtest and for several numbers of ranks: up to 8,
// or up to 3 with -short.
// open returns the connected endpoints of a new group, by rank; if it cannot, it fails t.
// Test closes the endpoints. open must not keep them: a closed endpoint has to become
// garbage.
func Test(t *testing.T, open func(t testing.TB, ranks int) []transport.Endpoint) {
	TestUnder(t, open, func(_ *testing.T, check func()) { check() })
}

// TestUnder is Test for checks that run inside of run, such as under a seed of package interleave.
// Then it leaves out those that count goroutines.
func TestUnder(t *testing.T, open func(t testing.TB, ranks int) []transport.Endpoint, run func(t *testing.T, check func())) {
	patience := longPatience
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range c.ranks {
				if n > shortRanks && testing.Short() {
					break
				}

				ok := t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
					h := &harness{
						open:     func(ranks int) []transport.Endpoint { return open(t, ranks) },
						size:     n,
						patience: patience,
					}
					var err error
					run(t, func() { err = c.on(h, n) })
					if errors.Is(err, errHung) {
						patience = max(patience/2, shortPatience)
					}

					if err != nil {
						t.Error(err)
					}
				})
				if !ok {
					return // larger groups would fail for the same reason, and perhaps hang
				}
			}
		})
	}
}

// check is one subtest: run fails if n ranks break the rule.
type check struct {
	name  string
	ranks []int
	run   func(h *harness, n int)
	rule  string
}

// on runs the check. Its error ends with the rule that was broken.
func (c *check) on(h *harness, n int) error {
	if err := catchFailure(func() { c.run(h, n) }); err != nil {
		return fmt.Errorf("%w\nrule: %s", err, c.rule)
	}
	return nil
}

var (
	anySize = []int{1, 2, 3, 4, 5, 7, 8}
	several = []int{2, 3, 4, 5, 7, 8}
	few     = []int{2, 3, 5}
	pair    = []int{2}
	three   = []int{3}
)

var checks = []check{
	{"Identity", anySize, identity,
		"Rank and Size are constant, with 0 <= Rank < Size; Name is the same on all ranks and not empty; PayloadLimit is 0 or at least InlineBytes; exactly one of Memory and Staging is not nil; a new group has neither failed nor lost a rank"},
	{"Conclude", anySize, conclude,
		"the first rank that calls Conclude decides for all ranks, and the decision does not change"},
	{"Groups", few, groups,
		"groups of one process do not disturb each other"},

	{"Sync", anySize, syncCalls,
		"Enter returns only after all ranks have entered the call, and what they did before happens before"},
	{"Payload/Sizes", anySize, payloadSizes,
		"Payload returns what each rank brought to the call, until this rank enters or refuses its next call, whatever other ranks do"},
	{"Payload/Mixed", several, payloadMixed,
		"calls with and without payload, Exposed and not, may follow each other in any order"},
	{"Fingerprint", anySize, fingerprints,
		"Fingerprint returns the fingerprint that each rank brought to the call"},
	{"Mismatch", several, mismatch,
		"if hashes differ, every rank gets *MismatchError and can read all fingerprints, and no rank's memory is touched"},
	{"Overlap", several, overlap,
		"if ranks share memory and one writes what another reads or writes, every rank gets *OverlapError with the ranks that brought it; ranks may read the same memory"},

	{"AnyRunner", anySize, anyRunner,
		"in a call with AnyRunner each rank's body is run exactly once, by any rank, and before that rank returns; if the call is Exposed, before any rank returns; the rank that runs a body sees the displacements of that body's rank"},
	{"AnyRunner/Failing", several, anyRunnerFailing,
		"a call with AnyRunner and Exposed in which one body failed is complete on no rank, and no rank hangs"},

	{"View", anySize, views,
		"between Enter and Complete a rank can read all ranks' buffers, or staged copies, and store results to them; after Complete no other rank touches this rank's buffers"},
	{"View/Uneven", anySize, unevenViews,
		"ranks may bring buffers of different lengths to a view, or none"},
	{"Staging", anySize, staging,
		"after a flip every rank sees what each rank put before it, until its own next flip; Enter of a Staged call is a flip"},

	{"Staging/Parts", anySize, stagingParts,
		"a rank for which a piece was put in parts sees its part; PutInput and PutParts may follow each other"},

	{"Staging/Resolved", several, stagingResolved,
		"a call whose last Flip the last rank comes to after another has given up waiting for it succeeds on all ranks; if it gives up as well, the call fails on all"},
	{"Messages/Order", several, messageOrder,
		"the bytes that one rank puts for another arrive once, unchanged and in order, with the Total, Seq and Clock of their message"},
	{"Messages/AllPairs", several, messageAllPairs,
		"every ordered pair of ranks has its own stream: ranks that alternate between Put and Next do not block each other, whatever the sizes"},
	{"Messages/Held", several, messagesHeld,
		"a view is valid until Take, also while the rank waits for messages from other ranks"},
	{"Messages/Drain", several, messageDrain,
		"Drain returns only after the receiver has taken everything that was put; then the sender may overwrite its memory"},

	{"P2P/Order", several, p2pOrder,
		"what a rank puts arrives once, unchanged, in order and in parts, with the Total, Seq and Clock of its message; Rest returns when the rank may be able to put, take, or find a stream drained"},
	{"P2P/Drain", few, p2pDrain,
		"TryDrained is true only after the receiver has taken everything that was put; then the sender may overwrite its memory"},
	{"P2P/Beside", few, p2pBeside,
		"one goroutine may use P2P while another makes calls, and their messages do not mix"},
	{"P2P/Wake", few, p2pWake,
		"Wake ends the current Rest of a rank, or its next one; Rest returns at once if ready is true"},
	{"P2P/Left", few, p2pLeft,
		"what a rank put before it left has arrived when Lost returns an error"},
	{"P2P/LostAny", few, p2pLostAny,
		"Lost of any rank returns an error once all others have left, and not before"},
	{"P2P/Behind", []int{2, 3, 4}, p2pBehind,
		"Behind follows the ranks that rest for another one, and ends at the rank that does not; AwaitedBy knows each step"},
	{"P2P/Served", []int{3}, p2pServed,
		"Behind ends at a rank that rested for another one as soon as that has sent it something, until it rests again"},
	{"P2P/GaveUp", []int{3}, p2pGaveUp,
		"a rank that calls Behind after its Rest counts as waiting for the rank that it announced, until its next call or WaitFor"},
	{"P2P/Withdraw", pair, p2pWithdraw,
		"after a failure TryNext returns nothing new; TryWithdraw returns ok only when no other rank has a view of this rank's memory, nor will get one, whatever happened to either rank"},

	{"Group/Members", anySize, groupMembers,
		"ranks form groups in any order of ranks, disjoint and overlapping, of one rank, all at the same time, during calls, and within groups; each group has its own calls and messages"},
	{"Group/Apart", few, groupsApart,
		"the failure or the end of a group does not affect the group that it was formed in, nor the other way round"},
	{"Group/Refused", several, groupRefused,
		"Group rejects invalid members; it fails if its context has ended, the group has failed, or the endpoint is closed"},
	{"Group/GivenUp", few, groupsGivenUp,
		"if a rank gives up all groups of a call, the members of each learn that it has, however many they are"},
	{"Group/Leaks", few, groupLeaks,
		"nothing of a closed group remains in the group that it was formed in"},
	{"Records", anySize, records,
		"all ranks of a node see what a rank writes to its part of the records, which is zero at first and stays when the rank has left"},
	{"NoSpin", anySize, noSpin,
		"in any call some ranks may set NoSpin and others not"},

	{"Reject/All", anySize, refuseAll,
		"calls that all ranks refuse leave the group as it was, and never overwrite what a slow rank still reads of the call before"},
	{"Reject/Alone", several, refuseAlone,
		"if some ranks refuse a call that others enter, those others get *RejectedError with the ranks, their reasons and the number of the call; when they record the failure, the next Enter of the ranks that refused ends"},
	{"Reject/Runs", few, refuseRuns,
		"if one rank refuses more calls than another, the first call on which they differ ends with an error"},
	{"Reject/On", few, refuseOn,
		"if a rank refuses further calls, an error has its reason for the call in question, or an empty one; the reason of the first call that it refused since its last Enter is kept"},

	{"Fail/First", anySize, failFirst,
		"all ranks get the failure that was recorded first, with its kind, rank, call, ranks and text; later ones change nothing"},
	{"Fail/Afterwards", several, failAfterwards,
		"a rank that enters a call of a failed group gets ErrFailed"},
	{"Interrupt/Failure", few, interruptedBy(failure),
		"a failure ends every wait with ErrFailed, whichever goroutine records it"},
	{"Interrupt/Cancel", few, interruptedBy(cancelled),
		"cancelling the context ends every wait under it with context.Canceled"},
	{"Interrupt/Deadline", pair, interruptedBy(deadline),
		"the deadline of the context ends every wait under it: in a call with context.DeadlineExceeded, in Group with *TimeoutError"},
	{"Interrupt/Departure", few, interruptedBy(departure),
		"the departure of the rank that is waited for ends every wait with *PeerLostError, also while yet another rank is missing"},
	{"Interrupt/Refusal", few, interruptedBy(refusal),
		"the refusal of the call by the rank that is waited for ends Enter with *RejectedError, also while yet another rank is missing"},
	{"Interrupt/OwnClose", few, interruptedBy(ownClose),
		"closing an endpoint ends the wait of its rank with ErrClosed"},
	{"Interrupt/Timeout", pair, interruptedBy(timeout),
		"the call's timeout ends every wait with *TimeoutError: ranks that did not enter the call are Missing, others Behind"},

	{"Reached", []int{2, 3, 4}, reached,
		"a wait fails only if what it waits for has not happened: that all ranks entered, a message was put or taken, or all ranks completed or flipped wins over a cancelled context, a departure and, unless memory is about to be touched, a failure"},
	{"Reached/Leaving", several, reachedLeaving,
		"a call that has succeeded on one rank succeeds on all, also if that rank leaves the group or fails it right afterwards"},

	{"Withdraw/Inside", several, withdrawInside,
		"Withdraw returns only when no other rank touches this rank's memory any more"},
	{"Withdraw/Early", several, withdrawEarly,
		"Withdraw does not wait for ranks that have not entered the call, and they can no longer get inside it"},
	{"Withdraw/Completed", several, withdrawCompleted,
		"a call that the last rank completes after another has given up waiting for it succeeds on all ranks; if it gives up as well, the call fails on all"},
	{"Withdraw/Stuck", pair, withdrawStuck,
		"Withdraw stops waiting for a rank that stays inside the call when the call's timeout has passed once more, and not before"},

	{"Context", three, endContexts,
		"a context that ends, or has ended before the call, ends the waits of its own rank and of no other"},
	{"Timeout/Missing", few, timeoutMissing,
		"*TimeoutError comes after the timeout and has exactly the ranks that are missing; Warn is called once, with the call and the ranks that are missing"},
	{"Timeout/Limit", three, timeoutLimit,
		"an Arrival's Limit overrides SetTimeout, and a timeout of 0 waits for ever"},
	{"Timeout/Warn", pair, timeoutWarn,
		"Warn is called after half of the timeout, and a timeout bounds one call, not several"},
	{"Timeout/Endless", pair, timeoutEndless,
		"a negative timeout ends no call, and Warn is called each time that as long has passed"},

	{"Close", anySize, closeTwice,
		"after Close, Enter and waits return ErrClosed; closing again does nothing"},
	{"Leaks", []int{1, 2, 4}, leaks,
		"after Close no goroutine, timer or context callback remains"},
	{"Random", several, random,
		"whatever calls follow each other and however the group ends, a call that returns nil has given the right result, and all ranks agree on the failure"},
}
