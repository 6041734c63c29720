package packet

import (
	"github.com/goccl/goccl/internal/interleave"

	"github.com/goccl/goccl/transport"
)

// levels are the endpoints of a group's levels. They fail with the group.
type levels struct {
	mu        interleave.Mutex
	endpoints []transport.Endpoint
}

// add adds the endpoint of a level.
func (l *levels) add(ep transport.Endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endpoints = append(l.endpoints, ep)
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
