package packet

import (
	"github.com/goccl/goccl/internal/interleave"

	"github.com/goccl/goccl/transport"
)

// levels are the endpoints of a group's levels. They fail with the group.
type levels struct {
	mu        interleave.Mutex
	endpoints []transport.Endpoint
	members   [][]int // of each
}

// add adds the endpoint of a level of members.
func (l *levels) add(ep transport.Endpoint, members []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endpoints, l.members = append(l.endpoints, ep), append(l.members, members)
}

// waitsFor returns the rank of the group for which this process's rank waits in a level, -1 if it
// does not.
func (l *levels) waitsFor() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, ep := range l.endpoints {
		if member, ok := ep.(interface{ WaitsFor() int }); ok {
			if on := member.WaitsFor(); on >= 0 && on < len(l.members[i]) {
				return l.members[i][on]
			}
		}
	}
	return -1
}

// drop forgets the levels, which may be freed afterwards.
func (l *levels) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endpoints = nil
}

// fail fails the levels of a group that has that failure. Each process does so for itself.
func (l *levels) fail(failure *transport.Failure) {
	text := "the group has failed"
	if failure != nil && failure.Text != "" {
		text += ": " + failure.Text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ep := range l.endpoints {
		f := &transport.Failure{Kind: transport.FailureAborted, By: ep.Rank(), Text: text}
		if local, ok := ep.(interface{ failHere(*transport.Failure) }); ok {
			local.failHere(f) // Fail would wait for the other processes
		} else {
			ep.Fail(f)
		}
	}
}
