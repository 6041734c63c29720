package groupsync

import (
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// Remote is the Rest of ranks that share no memory. Each process has copies of all states and of
// the words. A rank's own state is the original; the transport sends it to the other processes,
// and brings in what these send by Group.Arrive, Group.Update, Group.SetFailed and
// Group.SetVerdict. Wake of another rank sends it this rank's words.
type Remote interface {
	Processes
	// CatchUp returns when the copies have all that the other ranks had stored before the call, except
	// of ranks that are gone or do not answer in time.
	CatchUp()
	// StartCatchUp does not wait: isDone reports whether CatchUp would have returned.
	StartCatchUp() (isDone func() bool)
	// Blocker returns the rank that holds up the line of peer in a call, unless it has come: peer
	// itself, or a rank that passes lines on.
	Blocker(peer int, seq uint64) int
	// Host returns the name of the host of a rank, "" if this rank's has the same.
	Host(rank int) string
	// ProposeFailure proposes the failure that rank, which is this process's, has stored. It returns
	// when the group has one.
	ProposeFailure(rank int)
	// ProposeVerdict proposes whether the group was formed. It returns when that is decided.
	ProposeVerdict(isFormed bool)
}

// StateWords is the number of words of a State beside its lines.
const StateWords = 8

// sharedWords returns the words in the order in which a process must see them change: where that
// matters, it is the order in which their rank stores them.
func (s *State) sharedWords() [StateWords]*interleave.Uint64 {
	return [...]*interleave.Uint64{&s.done, &s.out, &s.rejectedFirst, &s.rejectedLast, &s.waitOn, &s.resting, &s.p2pWaitOn, &s.departed}
}

// HasDeparted reports whether words are those of a rank that has left.
func HasDeparted(words [StateWords]uint64) bool { return words[StateWords-1] != 0 }

// SetWaitOn makes words those of a rank that sleeps for another one, unless they say for which.
func SetWaitOn(words *[StateWords]uint64, rank int) {
	const waitOn = 4
	if words[waitOn] == 0 {
		words[waitOn] = uint64(rank) + 1
	}
}

// Words returns the words of rank beside its lines, consistent in their order: if one is new, so
// are those before it.
func (g *Group) Words(rank int) (words [StateWords]uint64) {
	all := g.states[rank].sharedWords()
	for i := StateWords - 1; i >= 0; i-- {
		words[i] = all[i].Load()
	}
	return words
}

// Update stores the words that rank has sent. It wakes this process's rank if they tell of an
// event.
func (g *Group) Update(me, rank int, words [StateWords]uint64) {
	all := g.states[rank].sharedWords()
	event := false
	for i, w := range words {
		if all[i].Load() == w {
			continue
		}
		all[i].Store(w)
		event = event || all[i] == &g.states[rank].rejectedLast || all[i] == &g.states[rank].departed || all[i] == &g.states[rank].out
	}
	if event {
		g.Notice(me)
	}
}

// Arrive stores the line that rank has sent. payload is its inline part.
func (g *Group) Arrive(rank int, seq, hash uint64, f transport.Fingerprint, payload []byte) {
	l := &g.states[rank].line[seq&1]
	if l.epoch.Load() >= seq {
		return
	}
	copy(l.payload[:], payload)
	l.hash, l.fingerprint = hash, f
	l.epoch.Store(seq)
}

// SetFailed makes the failure of rank `by` the group's in this process, unless it has one, and
// reports whether it did.
func (g *Group) SetFailed(me, by int) bool {
	if !g.words.fail.CompareAndSwap(0, uint64(by)+1) {
		return false
	}
	g.Notice(me)
	return true
}

// SetVerdict stores in this process whether the group was formed, unless that is decided, and
// reports whether it did.
func (g *Group) SetVerdict(isFormed bool) bool {
	verdict := uint64(unformed)
	if isFormed {
		verdict = formed
	}
	return g.words.verdict.CompareAndSwap(undecided, verdict)
}

// Decided reports whether it is decided in this process if the group was formed.
func (g *Group) Decided() bool { return g.words.verdict.Load() != undecided }

// FailedBy returns the rank whose failure is the group's in this process, -1 if it has none.
func (g *Group) FailedBy() int { return int(g.words.fail.Load()) - 1 }

// HasDeparted reports whether rank has left the group.
func (g *Group) HasDeparted(rank int) bool { return g.states[rank].departed.Load() != 0 }

// IsWaiting reports whether a sleeper has announced that it sleeps.
func (g *Group) IsWaiting(sleeper int) bool {
	if n := len(g.states); sleeper >= n {
		return g.states[sleeper-n].resting.Load() != 0
	}
	return g.states[sleeper].waitOn.Load() != 0
}

// Notice makes rank me, which is this process's, look at the group's state again, after an event
// such as a death.
func (g *Group) Notice(me int) {
	g.words.events.Add(1)
	g.rest.Wake(me)
	g.rest.Wake(g.p2p(me))
}

// ForgetWaits forgets for whom rank waits, since it has not said so for long.
func (g *Group) ForgetWaits(rank int) {
	g.states[rank].waitOn.Store(0)
	g.states[rank].p2pWaitOn.Store(0)
}
