package syncmodel

import (
	"slices"
	"sync/atomic"
	"testing"
)

const (
	flat = spinning | sleeping
	all  = flat | parked
)

// A scenario is a script for every rank, and the kinds of failure with which the group may end; none: it
// stays alive. In parked mode inline calls and views are the same.
type scenario struct {
	modes   mode
	scripts string
	want    string
}

var scenarios = []scenario{
	// Nothing goes wrong. A rank that leaves after its last call must not harm those that are still in it; one
	// that stays does not wake them either.
	{all, "iwi iwi", "none"},
	{flat, "wiiw wiiw", "none"},
	{flat, "iw? iw?", "none"},
	{parked, "ii? ii?", "none"},
	{parked, "lil lil", "none"},
	{parked, "ll? ll?", "none"},
	{parked, "imi imi", "none"},
	{parked, "m? m?", "none"},
	{spinning, "iwi iwi iwi", "none"},
	{sleeping, "i? i? i?", "none"},

	{all, "ss ss", "none"},
	{all, "sis sis", "none"},
	{flat, "s? s?", "none"},
	{flat, "sw? sw?", "none"},
	{spinning, "s s s", "none"},
	{flat, "srs srs", "none"},

	// Calls that might have touched memory show all payloads.
	{flat, "eie eie", "none"},
	{flat, "ew? ew?", "none"},
	{spinning, "e e e", "none"},
	{flat, "e? e!", "aborted"},
	{flat, "ee e", "lost"},
	{spinning, "ee e ee", "lost"},
	{spinning, "ee ee *", "none aborted"},
	{spinning, "ee ee @", "none lost"},
	{sleeping, "ee+ ee", "none lost"},
	{flat, "E? e?", "none cancelled"},
	{flat, "eE ee", "none cancelled"},
	{flat, "e w", "mismatch"},
	{flat, "ere eee", "arguments"},

	// All ranks reject the same calls.
	{all, "iri? iri?", "none"},
	{all, "rri rri", "none"},
	{all, "riri riri", "none"},
	{spinning, "ri? ri? ri?", "none"},

	// Some reject, some do not.
	{all, "iri iii", "arguments"},
	{all, "rri rii", "arguments"},
	{all, "ir ii", "arguments"},
	{all, "wrw www", "arguments"},
	{spinning, "r i i", "arguments"},
	{spinning | parked, "r r i", "arguments"},
	{spinning, "ri ri ii", "arguments"},

	// Ranks make different calls.
	{all, "iw ii", "mismatch"},
	{all, "w i", "mismatch"},
	{parked, "m i", "mismatch"},
	{all, "W i", "mismatch cancelled"},
	{all, "w I", "mismatch cancelled"},
	{parked, "M i", "mismatch cancelled"},
	{spinning, "W w i", "mismatch cancelled"},

	// A rank leaves that is still needed, or was until just now.
	{all, "i -", "lost"},
	{all, "ii i", "lost"},
	{all, "ww w", "lost"},
	{all, "rri rr", "lost"},
	{parked, "mm m", "lost"},
	{spinning, "ww ww w", "lost"},
	{parked, "w w -", "lost"},
	{spinning, "ii i ii", "lost"},

	// A worker returns an error.
	{all, "ii i!", "aborted"},
	{all, "ww w!", "aborted"},
	{all, "w! w!", "aborted"},
	{parked, "mm m!", "aborted"},
	{spinning, "ww w! ww", "aborted"},
	{spinning | parked, "w! w w", "aborted"},
	{spinning, "ii i! i", "aborted lost"},

	// Another goroutine aborts the group.
	{spinning | parked, "ii ii *", "none aborted"},
	{spinning, "ww ww *", "none aborted"},
	{spinning, "ri ri *", "none aborted"},
	{sleeping, "w w *", "none aborted"},
	{parked, "l l *", "none aborted"},
	{parked, "m? m? *", "none aborted"},

	{all, "ss s", "lost"},
	{all, "ss s!", "aborted"},
	{all, "s! s!", "aborted"},
	{spinning, "s s s!", "none aborted"},
	{spinning, "s s *", "none aborted"},

	// Another goroutine closes rank 0: before a call, in it, and beside its end.
	{all, "ii ii @", "none lost"},
	{spinning, "ww ww @", "none lost"},
	{sleeping, "w w @", "none lost"},
	{spinning, "ss ss @", "none lost"},
	{sleeping, "s s @", "none lost"},
	{spinning | parked, "ri ri @", "none lost"},
	{spinning, "W w @", "none lost cancelled"},
	{spinning | parked, "w w! @", "lost aborted"},
	{all, "w i @", "mismatch lost"},
	{parked, "l l @", "none lost"},
	{parked, "m m @", "none lost"},

	// Whichever rank is missing, the wait for another ends.
	{flat, "i -? -", "lost"},
	{spinning, "i -? r", "arguments"},
	{spinning, "ri r r?", "lost"},
	{parked, "i -? -", "lost"},
	{spinning, "i i i", "none"},

	// A process dies, at any step: in a call, between two, in its sleep, while it tells others of a failure.
	{sleeping, "ii+ ii", "none lost"},
	{sleeping, "ii+ ii+", "none lost"},
	{sleeping, "ww+ ww", "none lost"},
	{sleeping, "w+ w+", "none lost"},
	{sleeping, "ri+ ri", "none lost"},
	{sleeping, "ri+ ii", "lost arguments"},
	{sleeping, "W+ w", "none lost cancelled"},
	{sleeping, "w+ w!", "none lost aborted"},
	{sleeping, "i+ i i", "none lost"},

	// A context ends.
	{all, "S? s?", "none cancelled"},
	{all, "S? S?", "none cancelled"},
	{all, "sS ss", "none cancelled"},
	{spinning, "S s s", "none cancelled"},
	{all, "S s!", "aborted cancelled"},
	{all, "I i", "none cancelled"},
	{all, "Ii ii", "none cancelled"},
	{all, "W? w?", "none cancelled"},
	{all, "W? W?", "none cancelled"},
	{all, "wW ww", "none cancelled"},
	{all, "WW WW", "none cancelled"},
	{all, "rI ri", "none cancelled"},
	{parked, "L? l?", "none cancelled"},
	{parked, "M M", "none cancelled"},
	{spinning, "I i i", "none cancelled"},
	{spinning, "W w w", "none cancelled"},
	{spinning, "W? W? w?", "none cancelled"},
	{parked, "W w? w", "none cancelled"},

	// Two things happen at once.
	{all, "W w!", "aborted cancelled"},
	{all, "Ww w", "lost cancelled"},
	{all, "x w", "panicked"},
	{all, "x W", "panicked cancelled"},

	// A rank does not come: its peers have their timeout.
	{all, "i -?", "cancelled"},
	{all, "ww w?", "cancelled"},
	{all, "ri r?", "cancelled"},
	{spinning | parked, "w -? w", "cancelled"},
}

// largest are the scripts of the scenarios with by far the most states.
var largest = []string{"i+ i i", "W? W? w?", "W w w", "ri? ri? ri?", "S s s"}

// In every scenario, whatever the order of steps, all properties hold. With -short the largest
// scenarios are left out.
func TestProtocol(t *testing.T) {
	var ran, states atomic.Int64
	t.Cleanup(func() { t.Logf("%d scenarios, %d states", ran.Load(), states.Load()) })
	for _, sc := range scenarios {
		if testing.Short() && slices.Contains(largest, sc.scripts) {
			continue
		}

		for _, mode := range []mode{spinning, sleeping, parked} {
			if sc.modes&mode == 0 {
				continue
			}
			t.Run(modeNames[mode]+" "+sc.scripts, func(t *testing.T) {
				t.Parallel()
				n, broken := newModel(mode, nothing, sc.scripts).explore(sc.want)
				if broken != nil {
					t.Fatal(broken)
				}
				ran.Add(1)
				states.Add(int64(n))
			})
		}
	}
}

// mutants lists for every rule the property that breaks without it, and the scenario.
var mutants = []struct {
	without rule
	scenario
	breaks property
}{
	{settles, scenario{spinning, "iri? iri?", "none"}, dataSafety},
	{twoLines, scenario{spinning, "iwi iwi", "none"}, dataSafety},
	{freshLook, scenario{spinning, "ir ii", "arguments"}, progress},
	{freshLook, scenario{spinning, "ii i ii", "lost"}, progress},
	{secondTest, scenario{spinning, "i? i!", "aborted"}, agreement},
	{rejectedBeatsDeparted, scenario{spinning, "ir ii", "arguments"}, rightVerdict},
	{rejectedBeatsDeparted, scenario{parked, "ir ii", "arguments"}, rightVerdict},
	{wordThenEvent, scenario{spinning, "i -", "lost"}, progress},
	{firstCause, scenario{spinning, "w i", "mismatch"}, oneVerdict},

	{payloadsSuffice, scenario{spinning, "ii i ii", "lost"}, agreement},
	{payloadsSuffice, scenario{spinning, "i? i!", "aborted"}, agreement},
	{payloadsSuffice, scenario{spinning, "e? e!", "aborted"}, agreement},
	{payloadsSuffice, scenario{spinning, "ee e ee", "lost"}, agreement},
	{failBeatsReached, scenario{spinning, "W? w?", "none cancelled"}, memorySafety},
	{completionSync, scenario{spinning, "wiiw wiiw", "none"}, memorySafety},
	{earlyLeave, scenario{spinning, "W? w?", "none cancelled"}, memorySafety},
	{outOfEveryCall, scenario{spinning, "w i", "mismatch"}, progress},

	{storeThenSleepers, scenario{sleeping, "i? i? i?", "none"}, progress},
	{everyStoreWakes, scenario{sleeping, "iw? iw?", "none"}, progress},
	{everyStoreWakes, scenario{sleeping, "W? W?", "none cancelled"}, progress},
	{flagThenTest, scenario{sleeping, "i? i? i?", "none"}, progress},
	{tokensStay, scenario{sleeping, "iw? iw?", "none"}, progress},
	{tokensStay, scenario{parked, "ii? ii?", "none"}, progress},

	{countsRejected, scenario{parked, "rri rri", "none"}, progress},
	{runnerLooksAtFail, scenario{parked, "I i", "none cancelled"}, memorySafety},
	{runnerLooksAtFail, scenario{parked, "M M", "none cancelled"}, memorySafety},
	{leaverWaitsForRunners, scenario{parked, "I i", "none cancelled"}, memorySafety},
	{loweringWakes, scenario{parked, "W? W?", "none cancelled"}, progress},
	{leaverTestsCompleted, scenario{parked, "I i", "none cancelled"}, agreement},
	{completeThenWake, scenario{parked, "ii? ii?", "none"}, progress},
	{resetThenOpen, scenario{parked, "ll? ll?", "none"}, memorySafety},
	{helpersAreRunners, scenario{parked, "L? l?", "none cancelled"}, memorySafety},
	{claimersLookAtFail, scenario{parked, "L? l?", "none cancelled"}, memorySafety},
	{lastFinisherCompletes, scenario{parked, "ll? ll?", "none"}, memorySafety},

	{claimsAreCAS, scenario{spinning, "ss ss", "none"}, memorySafety},
	{stealThenDone, scenario{spinning, "S s s", "none cancelled"}, memorySafety},
	{looksAtAll, scenario{spinning, "i -? -", "lost"}, progress},
	{departedThenWord, scenario{sleeping, "i+ i i", "none lost"}, agreement},
	{calmBefore, scenario{spinning, "ri r r?", "lost"}, progress},
	{calmIsQuiet, scenario{spinning, "ii ir", "arguments"}, progress},
	{sleepersSuspect, scenario{sleeping, "ii+ ii", "none lost"}, progress},
	{deadAreOut, scenario{sleeping, "W+ w", "none lost cancelled"}, progress},
	{numberFirst, scenario{spinning, "ss ss @", "none lost"}, agreement},
	{leaverTestsBodies, scenario{spinning, "s! s!", "aborted"}, agreement},
	{leaverTestsDone, scenario{spinning, "ww ww *", "none aborted"}, agreement},
	{leaverTestsDone, scenario{spinning, "W? w?", "none cancelled"}, agreement},
	{leaverTestsDone, scenario{spinning, "ww ww @", "none lost"}, agreement},
	{leaverTestsDone, scenario{sleeping, "W+ w", "none lost cancelled"}, agreement},
	{leaverTestsDone, scenario{parked, "M M", "none cancelled"}, agreement},
}

// Without any one of its rules the protocol is wrong, in a scenario in which it is right with it.
func TestEveryRuleIsNeeded(t *testing.T) {
	killed := map[rule]bool{}
	for _, mu := range mutants {
		killed[mu.without] = true
		t.Run(ruleWords[mu.without], func(t *testing.T) {
			t.Parallel()
			explored := func(sc scenario) bool { // by TestProtocol
				return sc.scripts == mu.scripts && sc.want == mu.want && sc.modes&mu.modes != 0
			}
			if !slices.ContainsFunc(scenarios, explored) {
				if _, broken := newModel(mu.modes, nothing, mu.scripts).explore(mu.want); broken != nil {
					t.Fatalf("with the rule, %s", broken)
				}
			}
			n, broken := newModel(mu.modes, mu.without, mu.scripts).explore(mu.want)
			if broken == nil {
				t.Fatalf("%s, %q: nothing breaks in %d states without the rule; want a violation of %s",
					modeNames[mu.modes], mu.scripts, n, mu.breaks)
			}
			if broken.property != mu.breaks {
				t.Fatalf("%s, %q: want a violation of %s, but %s", modeNames[mu.modes], mu.scripts, mu.breaks, broken)
			}
			t.Logf("without the rule, %s, %q: %s", modeNames[mu.modes], mu.scripts, broken)
		})
	}
	for r := nothing + 1; r < rules; r++ {
		if !killed[r] {
			t.Errorf("no scenario shows why %s", ruleWords[r])
		}
	}
}
