package groupsync

import (
	"slices"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// FindStuck returns the rank at the end of the chain of waits from peer, for which this rank
// waits in a call.
func (r *Member) FindStuck(peer int) int {
	return r.followWaits(peer,
		func(who int) uint64 { return r.group.states[who].waitOn.Load() &^ gaveUp },
		func(who int) bool { return isAwake(&r.group.states[who].waitOn, r.group.rest, who) })
}

// findAwake returns the other ranks that neither sleep nor have given up, in a call that all ranks
// have entered and in which they sleep until one of them has completed it. A rank shows that it
// sleeps once it was woken in vain.
func (r *Member) findAwake() (ranks []int) {
	r.state.waitOn.Store(anyRank)
	for i := 0; ; i++ {
		ranks = ranks[:0]
		for who, s := range r.group.states {
			if s.waitOn.Load() == 0 {
				ranks = append(ranks, who)
			}
		}
		if len(ranks) < 2 || i == wakeTries {
			return ranks
		}
		r.group.WakeOthers(r.rank)
		interleave.Sleep(wakeTime) // some may time out at the same moment
	}
}

// waitsFor returns the rank that waitOn says, of a group of that size; -1 if none or any.
func waitsFor(waitOn uint64, size int) int {
	if on := waitOn &^ gaveUp; on != 0 && on <= uint64(size) {
		return int(on) - 1
	}
	return -1
}

// WaitsFor returns the rank for which this one sleeps in a call, or for which the ranks have waited
// in vain; -1 if none, or if that is this one. Any goroutine may call it.
func (r *Member) WaitsFor() int {
	switch f := r.Failure(); {
	case f == nil:
		return waitsFor(r.state.waitOn.Load(), r.Size())
	case (f.Kind == transport.FailureTimeout || f.Kind == transport.FailureStuck) && len(f.Ranks) > 0 && f.Ranks[0] != r.rank:
		return f.Ranks[0]
	}
	return -1
}

// isAwake reports whether a rank that waitOn announces as a waiter neither sleeps nor has given up.
// Unless it is stopped, such a rank is awake for a moment only.
func isAwake(waitOn *interleave.Uint64, rest Rest, sleeper int) bool {
	on := waitOn.Load()
	return on != 0 && on&gaveUp == 0 && !rest.IsAsleep(sleeper)
}

// followWaits returns the end of the chain of waits from peer. waitOn returns 1 + the rank that a
// rank waits for, or 0.
//
// A member that was stopped may have been served without having looked, and in a circle it could
// perhaps serve another member. It stays awake, and followWaits returns it.
func (r *Member) followWaits(peer int, waitOn func(who int) uint64, isAwake func(who int) bool) int {
	chain, end := r.chainFrom(peer, waitOn)
	if r.group.processes == nil { // whoever was stopped after it took its token leaves this one
		for _, who := range chain {
			r.group.rest.Wake(who)
			r.group.rest.Wake(r.group.p2p(who))
		}
	}
	isAsleep := func(who int) bool { return !isAwake(who) }
	stopped := slices.DeleteFunc(chain, isAsleep)
	if len(stopped) == 0 {
		return end
	}
	for range wakeTries {
		interleave.Sleep(wakeTime) // their own tickers may have woken them just now
		if stopped = slices.DeleteFunc(stopped, isAsleep); len(stopped) == 0 {
			_, end = r.chainFrom(peer, waitOn) // they have gone on, perhaps to no wait at all
			return end
		}
	}
	return stopped[0]
}

// chainFrom returns the chain of waits from peer up to this rank, and the rank at its end.
func (r *Member) chainFrom(peer int, waitOn func(who int) uint64) (chain []int, end int) {
	for who := peer; who != r.rank && !slices.Contains(chain, who); {
		on := waitsFor(waitOn(who), r.Size())
		if on < 0 || on == who { // it waits for its own message
			return chain, who
		}
		chain = append(chain, who)
		who = on
	}
	return chain, peer // of a circle
}

// wakeTime is the longest time that a process takes to run after it was woken, unless it is
// stopped.
const wakeTime = 20 * time.Millisecond

// wakeTries bounds how often followWaits waits for wakeTime. Ranks that time out at the same
// moment are woken together, but run one after the other if they outnumber the cores.
const wakeTries = 5
