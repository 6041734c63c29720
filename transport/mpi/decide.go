//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"time"

	"github.com/goccl/goccl/transport"
)

// The ranks of a group have one failure, and agree on whether the group was formed. The referee decides: the
// lowest rank that is still there and answers. A rank that proposes waits for its word, for decideTime at most; then,
// and if the referee goes, it decides for itself and tells the others.
const decideTime = time.Second

// settleTime is how long a rank waits for the answers of others before it gives up a wait. It does not wait again for one
// that has not answered, until that one sends something.
const settleTime = 2 * time.Second

// answersNow reports whether a rank can still answer, and its process has answered or sent something of late.
func (g *group) answersNow(rank int) bool {
	return g.there(rank) && !g.process.mute[g.world[rank]].Load()
}

// there reports whether a rank can still answer.
func (g *group) there(rank int) bool {
	return !g.sync.Left(rank) && !g.process.isDead(g.world[rank])
}

// referee returns the rank that decides.
func (g *group) referee() int {
	for rank := range g.world {
		if rank == g.rank || g.answersNow(rank) {
			return rank
		}
	}
	return g.rank
}

// propose asks the referee to decide, until decided returns true.
func (g *group) propose(h head, body []byte, decided func() bool, decide func()) {
	if g.silent.Load() { // no other rank hears it
		decide()
		return
	}
	asked := -1
	g.process.within(decideTime, func() bool {
		if decided() {
			return true
		}
		referee := g.referee()
		if referee == g.rank {
			for g.process.poll() { // others may have decided while this process was stopped
			}
			decide()
			return true
		}
		if referee != asked {
			asked = referee
			g.tell(referee, h, body)
		}
		return false
	})
	if !decided() {
		decide()
	}
}

// ProposeFailure implements groupsync.Remote.
func (r *rest) ProposeFailure(rank int) {
	g := r.group
	g.propose(head{kind: kindPropose}, encodeFailure(g.causes.Load(rank)), func() bool { return g.sync.FailedBy() >= 0 }, func() { g.fail(rank) })
	// A rank that enters a call from now on must know, whatever way the referee's word takes.
	by := g.sync.FailedBy()
	g.sending.Lock()
	g.tellAll(head{kind: kindFailed, number: uint64(by)}, encodeFailure(g.causes.Load(by)))
	g.sending.Unlock()
	r.Settle()
}

// fail makes the failure of a rank the group's, unless it has one, and tells all ranks.
func (g *group) fail(by int) {
	g.sending.Lock()
	defer g.sending.Unlock()
	if f := g.causes.Load(by); g.setFailed(by) {
		g.tellAll(head{kind: kindFailed, number: uint64(by)}, encodeFailure(f))
	}
}

// heardFailure handles a failure that a rank proposes, or that is decided.
func (g *group) heardFailure(h head, body []byte) error {
	f, err := decodeFailure(body, len(g.world))
	by := int(h.number)
	if h.kind == kindPropose {
		by = h.from
	}
	if err != nil || by < 0 || by >= len(g.world) {
		return errPacket
	}
	if by != g.rank && g.sync.FailedBy() != by {
		g.causes.Store(by, f)
	}
	if h.kind == kindPropose {
		g.fail(by)
		if first := g.sync.FailedBy(); first != by { // the rank that proposes may not know, if that one could tell no rank
			g.tell(by, head{kind: kindFailed, number: uint64(first)}, encodeFailure(g.causes.Load(first)))
		}
	} else {
		g.setFailed(by)
	}
	return nil
}

// ProposeVerdict implements groupsync.Remote.
func (r *rest) ProposeVerdict(isFormed bool) {
	g := r.group
	g.propose(head{kind: kindConclude, flag: isFormed}, nil, g.sync.Decided, func() { g.conclude(isFormed) })
}

// conclude decides whether the group was formed, unless that is decided, and tells all ranks.
func (g *group) conclude(isFormed bool) {
	g.sending.Lock()
	defer g.sending.Unlock()
	if g.sync.SetVerdict(isFormed) {
		g.tellAll(head{kind: kindVerdict, flag: isFormed}, nil)
	}
}

// Settle implements groupsync.Remote. It asks once more for lines of ranks that have not answered.
func (r *rest) Settle() {
	g := r.group
	before := g.lacking()
	g.process.until(context.Background(), r.Ask())
	if len(g.lacking()) > len(before) {
		g.process.until(context.Background(), r.Ask())
	}
}

// Ask implements groupsync.Remote. It asks all other ranks, whose answers come after all that they have sent before.
func (r *rest) Ask() (settled func() bool) {
	g := r.group
	if g.silent.Load() {
		return func() bool { return true }
	}
	question, body := g.questions.Add(1), encodeRanks(g.lacking())
	var asked []int
	for rank := range g.world {
		if rank != g.rank && g.answersNow(rank) {
			asked = append(asked, rank)
			g.tell(rank, head{kind: kindQuestion, number: question}, body)
		}
	}
	begin := time.Now()
	return func() bool {
		for len(asked) > 0 && (g.answers[asked[0]].number.Load() >= question || !g.there(asked[0])) {
			asked = asked[1:]
		}
		if len(asked) > 0 && time.Since(begin) < settleTime {
			return false
		}
		for _, rank := range asked {
			if g.answers[rank].number.Load() < question && g.there(rank) {
				g.process.mute[g.world[rank]].Store(true)
				g.sync.Silent(rank)
			}
		}
		asked = nil
		return true
	}
}

// failed returns the group's failure in this process; nil if it has none.
func (g *group) failed() *transport.Failure {
	if by := g.sync.FailedBy(); by >= 0 {
		return g.causes.Load(by)
	}
	return nil
}
