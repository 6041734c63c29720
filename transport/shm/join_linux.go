package shm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/groupsync"
	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// geometryOf is how large a job's memory is; tests have smaller ones.
var geometryOf = DefaultGeometry

// Join makes this process one rank of a job, whose ranks are processes of one node,
// and returns its endpoint. It is collective: it returns on all ranks when all have
// joined, or fails on all that are there, at the latest when ctx ends. Nothing stays
// behind in /dev/shm once all have joined, however they end. A rank that gets
// no file descriptor or no memory stays in Join for a second to tell the others.
//
// errors.As finds *transport.TimeoutError (the deadline of ctx has passed; it names
// the ranks that did not come), *transport.PeerLostError,
// *transport.AllocationFailedError and *transport.AbortedError; other errors say what
// is wrong with the job or with what lies in the place of its memory.
func Join(ctx context.Context, j Job) (transport.Endpoint, error) {
	g := geometryOf(j.Size)
	if err := g.validate(j.Size); err != nil {
		return nil, err
	}
	h, err := newHeader(j, g.layout(j.Size).total)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	waiting, stop := watched(ctx, h.noticed)
	ep, err := join(waiting, j, g, func(s *segment) bool { return j.Size <= usableCores(s, j.Size) })
	stop()
	if err != nil {
		h.notify(ctx, j.Rank, err)
		return nil, err
	}
	return ep, nil
}

// join is Join with a geometry, and with what decides whether waits poll.
func join(ctx context.Context, j Job, g Geometry, poll func(*segment) bool) (transport.Endpoint, error) {
	if err := g.validate(j.Size); err != nil {
		return nil, err
	}
	s, err := openSegment(ctx, j, g.layout(j.Size).total)
	if err != nil {
		return nil, err
	}
	rest := &processes{segment: s}
	n := newNode(s.arena, g, j.Size, rest)
	rest.tokens = groupsync.Tokens(n.states())
	if err := n.populate(j.Rank); err != nil {
		_ = rest.unmap()
		return nil, fmt.Errorf("shm: rank %d: %w", j.Rank, err)
	}
	if err := s.safely(func() error { n.poll = poll(s); return nil }); err != nil {
		return nil, errors.Join(err, rest.unmap())
	}
	m := &mapped{segment: s}
	m.endpoint = n.endpoint(j.Rank, m.makeRegion)
	m.mapping = rest
	return m, nil
}

// usableCores counts the cores that the ranks may run on, all together: each may be
// bound to some. Fewer processors than cores mean that the process may not use as
// much time as they have, which holds for all ranks together.
func usableCores(s *segment, ranks int) int {
	var all unix.CPUSet
	for rank := range ranks {
		var own unix.CPUSet
		if unix.SchedGetaffinity(s.pid(rank), &own) != nil { // it has ended, or lives in another pid namespace
			continue
		}
		for i := range all {
			all[i] |= own[i]
		}
	}
	cores := max(all.Count(), runtime.NumCPU())
	if limit := runtime.GOMAXPROCS(0); limit < runtime.NumCPU() {
		return min(cores, limit)
	}
	return cores
}

// watched returns a context that ends, for the reason that gone returns, soon after it
// returns one. Once stop has returned gone is not called any more.
func watched(ctx context.Context, gone func() error) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for ctx.Err() == nil {
			if err := gone(); err != nil {
				cancel(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(longestPause):
			}
		}
	})
	return ctx, func() {
		cancel(nil)
		watcher.Wait()
	}
}

// populate makes what a rank writes for others present, so that its first calls do
// not pay for it, and memory that is not to be had is an error here.
func (n *node) populate(rank int) error {
	l := n.layout
	for _, part := range [...]struct{ off, bytes int }{
		{l.states, l.ranks * groupsync.StateBytes},
		{l.payloads + 2*rank*l.payload, 2 * l.payload},
		{l.pieces + 4*rank*l.piece, 4 * l.piece},
	} {
		if err := n.arena.populate(part.off, part.bytes); err != nil {
			return err
		}
	}
	return nil
}
