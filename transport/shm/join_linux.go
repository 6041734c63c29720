package shm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// geometryOf is how large a job's memory is; tests have smaller ones.
var geometryOf = DefaultGeometry

// Join makes this process one rank of a job, whose ranks are processes of one node,
// and returns its endpoint. It is collective: it returns on all ranks when all have
// joined, or fails on all that are there, at the latest when ctx ends. Nothing stays
// behind in /dev/shm once all have joined, however they end.
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
	s, err := openSegment(ctx, j, g.layout(j.Size).total)
	if err != nil {
		return nil, err
	}
	rest := &processes{segment: s}
	n := newNode(s.arena, g, j.Size, rest)
	rest.states = n.states()
	if err := n.populate(j.Rank); err != nil {
		_ = rest.unmap()
		return nil, fmt.Errorf("shm: rank %d: %w", j.Rank, err)
	}
	var poll bool
	if err := s.safely(func() error { poll = j.Size <= usableCores(s, j.Size); return nil }); err != nil {
		return nil, errors.Join(err, rest.unmap())
	}
	m := &mapped{segment: s}
	m.endpoint = n.endpoint(j.Rank, poll, regions{make: func(ctx context.Context, number, size int) (transport.Region, error) {
		return openRegion(ctx, j, number, size, func() bool { return m.Failure() != nil })
	}})
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

// openRegion makes a region of a job, in a segment of its own. A failure of the group
// ends the wait for its ranks.
func openRegion(ctx context.Context, j Job, number, size int, failed func() bool) (transport.Region, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if failed() {
				cancel(transport.ErrFailed)
			}
			select {
			case <-ctx.Done():
			case <-time.After(longestPause):
			}
		}
	}()
	j.Name = fmt.Sprintf("%s-region-%d", j.Name, number)
	s, err := openSegment(ctx, j, size)
	if err != nil {
		return nil, err
	}
	return segmentRegion{s, size}, nil
}

type segmentRegion struct {
	*segment
	bytes int
}

func (r segmentRegion) Bytes() []byte { return r.arena.bytes(0, r.bytes) }
func (r segmentRegion) Free() error   { return r.close() }

// populate makes what a rank writes for others present, so that its first calls do
// not pay for it, and memory that is not to be had is an error here.
func (n *node) populate(rank int) error {
	l := n.layout
	for _, part := range [...]struct{ off, bytes int }{
		{l.states, l.ranks * 512},
		{l.payloads + 2*rank*l.payload, 2 * l.payload},
		{l.pieces + 4*rank*l.piece, 4 * l.piece},
	} {
		if err := n.arena.populate(part.off, part.bytes); err != nil {
			return err
		}
	}
	return nil
}
