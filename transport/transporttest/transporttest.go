package transporttest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
)

// A group of ranks may take so long for one script before it is reported as
// hanging; the longest takes about a second. Each such report halves it for the
// checks that follow, so that a badly broken transport does not cost an hour.
const (
	longPatience  = 20 * time.Second
	shortPatience = 2 * time.Second
)

// Test runs all checks on the transport that open opens, each as a subtest and
// for several numbers of ranks. open returns the connected endpoints of a new
// group, by rank; it fails t if it cannot. Test closes them, and open must not
// keep them: a closed endpoint has to become garbage.
func Test(t *testing.T, open func(t testing.TB, ranks int) []transport.Endpoint) {
	patience := longPatience
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range c.ranks {
				ok := t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
					h := &harness{
						open:     func(ranks int) []transport.Endpoint { return open(t, ranks) },
						logf:     t.Logf,
						patience: patience,
					}
					err := c.on(h, n)
					if errors.Is(err, errHung) {
						patience = max(patience/2, shortPatience)
					}
					if err != nil {
						t.Error(err)
					}
				})
				if !ok {
					return // larger groups would only say it again, and perhaps hang
				}
			}
		})
	}
}

// check is one subtest: run returns how n ranks broke the rule.
type check struct {
	name  string
	ranks []int
	run   func(h *harness, n int) error
	rule  string
}

// on runs the check; its error ends with the rule that was broken.
func (c *check) on(h *harness, n int) error {
	if err := c.run(h, n); err != nil {
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
		"Rank and Size are constant and 0 <= Rank < Size; Name is the same on all ranks and not empty; PayloadLimit is 0 or at least InlineBytes; exactly one of Memory and Staging is not nil"},
	{"Conclude", anySize, conclude,
		"the first rank that concludes decides for all, whatever they say, and once for all"},
	{"Groups", few, groups,
		"groups of one process do not disturb each other"},

	{"Sync", anySize, syncCalls,
		"Enter returns only after all ranks have entered the call, and orders what they did before it"},
	{"Payload/Sizes", anySize, payloadSizes,
		"Payload returns what each rank brought to the call, and goes on returning it until this rank enters or refuses its next call, whatever the others do"},
	{"Payload/Mixed", several, payloadMixed,
		"calls with and without payload, exposed and not, may follow each other in any order"},
	{"Print", anySize, prints,
		"Print returns the fingerprint that each rank brought to the call"},
	{"Mismatch", several, mismatch,
		"where hashes differ every rank gets *MismatchError, can read all fingerprints, and nobody's memory is touched"},
	{"Overlap", several, overlap,
		"where ranks share memory and one writes what another reads or writes, every rank gets *OverlapError with the ranks that brought it; what is only read may be shared"},

	{"Shared", anySize, sharedCalls,
		"in a Shared call each rank's body is run exactly once, by whoever, and before that rank returns; if the call is Exposed, before any rank returns; the rank that runs it sees the displacements that the other brought"},
	{"Shared/Failing", several, sharedFailing,
		"a Shared and Exposed call in which one body failed is completed on no rank, and no rank hangs"},

	{"Window", anySize, windows,
		"between Enter and Complete all ranks' buffers, or staged copies of them, are there to read and to store results to; after Complete they are their owner's again"},
	{"Window/Uneven", anySize, unevenWindows,
		"ranks may bring buffers of different lengths to a window, or none"},
	{"Staging", anySize, staging,
		"after a turn every rank sees what each rank staged and shared before it, until it comes to the next; Enter of a Staged call is a turn"},

	{"Messages/Order", several, messageOrder,
		"the bytes of a pair of ranks arrive once, unchanged and in the order in which they were put, with the Total, Seq and Clock of their message"},
	{"Messages/AllPairs", several, messageAllPairs,
		"every ordered pair has its own stream: ranks that put and take in turns do not block each other, whatever the sizes"},
	{"Messages/Held", several, messagesHeld,
		"a view is valid until Take, also while messages from other ranks are awaited"},
	{"Messages/Drain", several, messageDrain,
		"Drain returns only after the receiver has taken all that was put, and then the sender may overwrite its memory"},

	{"Lane/Order", several, laneOrder,
		"what a rank puts in its lane arrives once, unchanged and in order, in parts, with the Total, Seq and Clock of its message; and Rest returns when there may be more to put, to take, or to find drained"},
	{"Lane/Drain", few, laneDrain,
		"TryDrained is true only after the receiver has taken all that was put, and then the sender may overwrite its memory"},
	{"Lane/Beside", few, laneBeside,
		"a goroutine may use the lane while another makes calls, and their messages do not mix"},
	{"Lane/Wake", few, laneWake,
		"Wake ends the Rest that a rank is in, or its next one; and Rest returns when ready is true at first"},
	{"Lane/Events", few, laneEvents,
		"a failure, a departure and Close end the Rest of every rank, and Lost says who has left"},
	{"Lane/Left", few, laneLeft,
		"what a rank had put before it left is there when Lost says that it has"},
	{"Lane/Behind", []int{2, 3, 4}, laneBehind,
		"Behind goes from each rank that rests for one to that one, and ends at the rank that does not rest"},
	{"Lane/Served", []int{3}, laneServed,
		"Behind ends at a rank that has rested for another as soon as that has sent it something, until it rests again"},
	{"Lane/Withdraw", pair, laneWithdraw,
		"after a failure TryNext shows nothing new; and whatever has happened to either rank, TryWithdraw says that this rank's memory is its own again only when no other rank has a view of it, nor will get one"},

	{"Group/Members", anySize, groupMembers,
		"ranks form groups in any order of ranks, disjoint and overlapping ones, of one rank, all at the same time and while they make calls, and groups of groups; each has calls, messages and a lane of its own"},
	{"Group/Apart", few, groupsApart,
		"the failure and the end of a group leave that alone which it was formed in, and the other way round"},
	{"Group/Refused", several, groupRefused,
		"Group refuses members that cannot be, and fails under a context that has ended, and in a group that has failed or was left"},
	{"Group/Gone", []int{3, 4}, groupGone,
		"Group fails with *PeerLostError if a member has left before it came"},
	{"Group/Leaks", few, groupLeaks,
		"nothing of a group that was closed is left in the one that it was formed in"},
	{"Patient", anySize, patientCalls,
		"in any call some ranks may be patient and others not"},

	{"Refuse/All", anySize, refuseAll,
		"calls that all ranks refuse leave the group as it was, and never touch what a slow rank still reads of the call before"},
	{"Refuse/Alone", several, refuseAlone,
		"if some ranks refuse a call that others enter, these get *RefusedError with those ranks, their reasons and the number of the call; they make the group fail, which ends the next Enter of the ranks that refused"},
	{"Refuse/Runs", few, refuseRuns,
		"a rank that has refused more calls than another is noticed at the first call on which they differ"},
	{"Refuse/On", few, refuseOn,
		"the reason of a rank that goes on refusing calls is that of the call in question, or none; that of the first call that it refused since its last Enter is kept"},

	{"Fail/First", anySize, failFirst,
		"the first failure is everybody's, with its kind, rank, call, ranks and text, and later ones change nothing"},
	{"Fail/Afterwards", several, failAfterwards,
		"a rank that enters a call of a group that has failed gets ErrFailed"},
	{"Interrupt/Failure", few, interruptedBy(failure),
		"a failure ends every wait with ErrFailed, whoever records it"},
	{"Interrupt/Cancel", few, interruptedBy(cancelled),
		"the end of the call's context ends every wait of the call with the context's error"},
	{"Interrupt/Deadline", pair, interruptedBy(deadline),
		"the deadline of the call's context ends every wait of the call with the context's error"},
	{"Interrupt/Departure", few, interruptedBy(departure),
		"the departure of the rank that is waited for ends every wait with *PeerLostError"},
	{"Interrupt/OwnClose", pair, interruptedBy(ownClose),
		"closing an endpoint ends the wait its rank is in with ErrClosed"},
	{"Interrupt/Timeout", pair, interruptedBy(timedOut),
		"every wait ends with *TimeoutError when the call's timeout is over: ranks that did not enter the call are Missing, others Behind"},
	{"Interrupt/Bystander", three, bystander,
		"a departure and a refusal are noticed while yet another rank is missing"},

	{"Reached/Enter", []int{2, 3, 4}, reachedEnter,
		"a wait fails only if what it waits for is not there: all ranks having entered beats a cancelled context, a departure and, if the call is not Exposed, a failure"},
	{"Reached/Inside", pair, reachedInside,
		"a wait fails only if what it waits for is not there: a message put, a message taken and a completion beat a cancelled context, a failure and a departure"},
	{"Reached/Leaving", several, reachedLeaving,
		"a call that has succeeded on one rank succeeds on all, also if that rank leaves the group or fails it right afterwards"},

	{"Withdraw/Inside", several, withdrawInside,
		"Withdraw returns only when no other rank touches this rank's memory any more"},
	{"Withdraw/Early", several, withdrawEarly,
		"Withdraw does not wait for ranks that have not arrived, and they do not get into the call any more"},
	{"Withdraw/Stuck", pair, withdrawStuck,
		"Withdraw gives up waiting for a rank that stays inside the call when the call's timeout has passed once more, and not before"},

	{"Context", three, contexts,
		"a context that ends, or has ended before the call, ends the waits of its own rank and no other's"},
	{"Timeout/Missing", []int{2, 3, 5}, timeoutMissing,
		"*TimeoutError comes after the timeout and names exactly the ranks that are missing; Warn is called once, with the call and the ranks that are missing"},
	{"Timeout/Limit", three, timeoutLimit,
		"an Entry's Limit takes the place of SetTimeout's, and a timeout of 0 waits"},
	{"Timeout/Warn", pair, timeoutWarn,
		"Warn is called when half of the timeout is over, and a timeout bounds one call, not several"},

	{"Close", anySize, closing,
		"after Close, Enter and waits return ErrClosed, and closing again does nothing"},
	{"Leaks", []int{1, 2, 4}, leaks,
		"after Close nothing is left: no goroutine, no timer, no callback of a context"},
	{"Random", several, random,
		"whatever calls follow each other and however the group ends, a call that returns nil has given the right result, and all ranks agree on the failure"},
}
