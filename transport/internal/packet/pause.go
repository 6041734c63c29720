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
	if here > interleave.Processors() {
		p.pollTime.Store(int64(sharedPollTime))
	}
}

// polls reports whether a wait that has lasted that long goes on polling without pause. Under a
// seed it never does: no time passes while a goroutine polls.
func (p *Process) polls(passed time.Duration) bool {
	return passed < time.Duration(p.pollTime.Load()) && !interleave.IsSeeded()
}

// yield lets other goroutines run between two polls.
func yield() { runtime.Gosched() }
