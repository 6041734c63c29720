package packet

import (
	"runtime"
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

// setPollTime sets how long ranks poll without pause, by how many of them share this machine.
func (p *Process) setPollTime(hosts []host) {
	here := 0
	for _, h := range hosts {
		if h.sharesPIDs(hosts[p.wire.Rank()]) {
			here++
		}
	}

	p.pollTime.Store(int64(pollTime))
	if p.awaiter != nil || here > interleave.Processors() {
		p.pollTime.Store(int64(shortPollTime))
	}
}

// pausing is what decides how often the wire is polled.
type pausing struct {
	pollTime     interleave.Int64  // how long a rank polls without pause, in nanoseconds
	misses       interleave.Int64  // waits since one that polling has ended
	libraryCalls interleave.Uint64 // collectives of the library that ranks have begun
}

// Ranks poll without pause if that has ended one of the last waits. A rank that polls keeps the one
// from running for which it waits, if both are on one core.
const (
	polledMisses = 4  // as many waits in a row that polling has not ended
	missesProbed = 32 // then it is tried once in so many
)

// isWorthPolling reports whether a wait that begins may poll without pause.
func (p *Process) isWorthPolling() bool {
	n := p.misses.Load()
	return p.awaiter == nil || n < polledMisses || n%missesProbed == 0
}

// notePolling notes the end of a wait: whether the rank has polled, and slept afterwards.
func (p *Process) notePolling(hasPolled, hasSlept bool) {
	switch {
	case hasSlept:
		p.misses.Add(1)
	case hasPolled && p.misses.Load() != 0:
		p.misses.Store(0)
	}
}

// polls reports whether a wait that has lasted that long goes on polling without pause. Under a
// seed it never does: no time passes while a goroutine polls.
func (p *Process) polls(passed time.Duration) bool {
	return passed < time.Duration(p.pollTime.Load()) && !interleave.IsSeeded()
}

// yield lets other goroutines run between two polls.
func yield() { runtime.Gosched() }
