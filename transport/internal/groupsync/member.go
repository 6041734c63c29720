package groupsync

import (
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// Member is one rank's access to its group: the part of a transport.Endpoint that all
// transports share.
//
// Its methods stand by what they do: in arrival.go how a rank enters a call or rejects it, in
// completion.go and departure.go how a call and the membership end, in wait.go and look.go how
// it waits and what interrupts a wait, in verdict.go the group's failure.
type Member struct {
	_     [128]byte // keeps memory of other ranks off the cache lines that this rank writes
	group *Group
	state *State
	rank  int

	call        call // the current one
	budgets     budgets
	calmEvents  uint64 // the event count as of the last look at all peers that found nothing
	slots       Slots
	inlineBytes int      // longest payload that fits into a line
	memories    memories // of all ranks, in the last call that compared them
	suspicion   suspicion
	deadline    deadline
	home        home
	beforeSleep func(waited time.Duration) // nil: nobody wants to know
	afterWait   func(waited time.Duration) // likewise

	isClosed interleave.Bool
	gaveUp   interleave.Bool  // its P2P shows a wait that it gave up, unless it waits again
	mu       interleave.Mutex // guards the ticker of deadline, and home, beside Leave
	verdict
	_ [128]byte
}

// Slots hold the payloads that are too long for a line. Each rank has two slots, one for even
// calls and one for odd calls. Without slots a group accepts no payloads at all.
type Slots [][2][]byte

// NewMember returns rank's access to g. All ranks of g share slots. If poll is set, waits poll
// before they park.
func NewMember(g *Group, rank int, slots Slots, poll bool) *Member {
	r := &Member{group: g, state: g.states[rank], rank: rank, slots: slots}
	r.verdict.group, r.verdict.rank = g, rank
	r.budgets.spinning = newBudget(poll, g.processes)
	r.budgets.current = &r.budgets.spinning
	r.inlineBytes = transport.InlineBytes
	if g.processes == nil {
		r.inlineBytes, r.memories = inlineBesideMemory, newMemories(len(g.states))
	}
	return r
}

// Rank returns the rank's number.
func (r *Member) Rank() int { return r.rank }

// BeforeSleep sets what a wait calls before it sleeps, with how long it has polled. It is for the
// goroutine of the calls, before the first of them. Between goroutines it does nothing: they sleep
// and wake in little more time than a clock takes.
func (r *Member) BeforeSleep(f func(waited time.Duration)) {
	if r.group.processes != nil || r.group.remote != nil {
		r.beforeSleep = f
	}
}

// AfterWait sets what a wait for a message or a round calls when it ends, unless what it waits for
// was there at once, with how long it took. It is for the goroutine of the calls, before the first
// of them.
func (r *Member) AfterWait(f func(waited time.Duration)) { r.afterWait = f }

// Size returns the number of ranks.
func (r *Member) Size() int { return len(r.group.states) }

// SetTimeout implements transport.Endpoint.
func (r *Member) SetTimeout(t transport.Timeout) { r.deadline.usual = t }

// PayloadLimit implements transport.Endpoint.
func (r *Member) PayloadLimit() int {
	if len(r.slots) == 0 {
		return 0
	}
	return len(r.slots[r.rank][0])
}

// Payload implements transport.Endpoint.
func (r *Member) Payload(rank, n int) []byte {
	l := &r.group.states[rank].line[r.call.entered&1]
	if n <= r.inlineBytes && (n == 0 || r.memories.known == nil || !l.hasReads()) {
		return l.payload[:n]
	}
	return r.slots[rank][r.call.entered&1][:n]
}

// Fingerprint implements transport.Endpoint.
func (r *Member) Fingerprint(rank int) transport.Fingerprint {
	return r.group.states[rank].line[r.call.entered&1].fingerprint
}

// IsAsleep reports whether a rank sleeps or is about to. The answer may be out of date, so only
// speed may depend on it.
func (r *Member) IsAsleep(rank int) bool {
	return r.group.words.sleepers.Load() != 0 && r.group.states[rank].waitOn.Load() != 0
}
