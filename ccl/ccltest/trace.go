package ccltest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/verbs"
)

type activity uint32

const (
	outside activity = iota // not in a call
	entering
	computing
	sending
	receiving
	looking
	ended
)

// activities describes them to users.
var activities = [...]string{
	outside:   "is in no call",
	entering:  "waits for the others to make the call",
	computing: "is in its kernel, outside of verbs",
	sending:   "waits for rank PEER to take a message",
	receiving: "waits for a message from rank PEER",
	looking:   "waits for the next piece of its view",
	ended:     "has returned from its kernel",
}

// trace is a rank's last activity, which does not change after a verb has failed, and the transfers
// of its last call.
type trace struct {
	word   atomic.Uint64
	failed atomic.Pointer[verbs.Position] // the verb that failed
	busy   atomic.Bool                    // a verb waits
	late   atomic.Bool                    // the kernel was outside of verbs when another rank's wait timed out

	mu        sync.Mutex
	transfers []verbs.Transfer
}

func (t *trace) set(a activity, peer int) { t.word.Store(uint64(a)<<32 | uint64(peer)) }

func (t *trace) activity() activity { return activity(t.word.Load() >> 32) }

// verb reports whether the rank is in a verb, or was when one failed.
func (t *trace) verb() bool {
	a := t.activity()
	return a == sending || a == receiving || a == looking
}

func (t *trace) String() string {
	peer := fmt.Sprint(uint32(t.word.Load()))
	text := strings.Replace(activities[t.activity()], "PEER", peer, 1)
	if position := t.failed.Load(); position != nil && t.verb() {
		text += ": " + position.String()
	}
	if t.late.Load() {
		text += ", and was in its kernel, outside of verbs, when another rank's wait timed out"
	}
	return text
}

// noteLate notes which ranks are in their kernels, outside of verbs, and at which lines. A wait has
// timed out that may be for them.
func (g *group) noteLate() {
	isLate := false
	for _, r := range g.ranks {
		if r.trace.activity() == computing {
			r.trace.late.Store(true)
			isLate = true
		}
	}
	if isLate && g.late.Load() == nil {
		text := kernelStacks()
		g.late.CompareAndSwap(nil, &text)
	}
}

// fail records the verb of a failed wait.
func (t *trace) fail() {
	if position := verbs.Caller(); t.verb() && position.Verb != "" {
		t.failed.Store(&position)
	}
}

// mostTransfers is the number of a call's transfers that a rank remembers, the first ones.
const mostTransfers = 4096

func (t *trace) add(x verbs.Transfer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.transfers) < mostTransfers {
		t.transfers = append(t.transfers, x)
	}
}

// clear forgets the last call when the next one begins.
func (t *trace) clear() {
	t.late.Store(false)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.transfers = t.transfers[:0]
}

// traces lists the last activity of each rank.
func (g *group) traces() string {
	var b strings.Builder
	for _, r := range g.ranks {
		fmt.Fprintf(&b, "\n  rank %d %v", r.me, &r.trace)
	}
	return b.String()
}
