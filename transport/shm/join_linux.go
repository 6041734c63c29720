package shm

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
	"golang.org/x/sys/unix"
)

// geometryOf returns the geometry of a job. Tests replace it by a smaller one.
var geometryOf = DefaultGeometry

// available returns nil: this is Linux.
func available() error { return nil }

// Join makes this process a rank of a job and returns its endpoint. The job's ranks are
// processes of one node.
//
// Join is collective. It returns on all ranks when all have joined, or fails on all ranks that
// have come, at the latest when ctx ends. Once all ranks have joined, nothing remains in
// /dev/shm, however they end. A rank that gets no file descriptor or no memory, or has come
// with another number of ranks, stays in Join for a second to tell the others. Join may be called
// concurrently.
//
// errors.As finds:
//   - *transport.TimeoutError if the deadline of ctx has passed; it names the ranks that did
//     not come;
//   - *transport.PeerLostError if a rank's process died;
//   - *transport.AllocationFailedError if the memory cannot be allocated;
//   - *transport.AbortedError if another rank gave up.
//
// Other errors describe what is wrong with the job or with a file that has the job's name.
func Join(ctx context.Context, j Job) (transport.Endpoint, error) {
	g := geometryOf(j.Size)
	if err := g.validate(j.Size); err != nil {
		return nil, err
	}
	h, err := newHeader(j, g.layout(j.Size).total)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}

	waiting, stop := watched(ctx, h.checkNotice)
	ep, err := join(waiting, j, g, func(s *segment) bool {
		return j.Size <= interleave.Fact(func() int { return usableCores(s, j.Size) }, interleave.Processors())
	})
	stop()
	if err != nil {
		h.postNotice(ctx, j.Rank, err)
		return nil, err
	}
	return ep, nil
}

// Refuse tells the ranks of j that wait in Join why this process does not come, for a second. The
// rank is j.Size if j does not have this process's. Rank 0, which makes the job's file, tells them
// nothing if a file of the name is there: it is another job's.
func Refuse(ctx context.Context, j *transport.Job, reason error) {
	named := jobOf(j)
	named.Rank = 0 // the job may not have the rank
	h, err := newHeader(named, geometryOf(j.Size).layout(j.Size).total)
	if err != nil {
		return // nobody waits in Join
	}
	f, _, err := findJob(filePath(h.name), h)
	if f != nil {
		_ = unix.Close(f.fd)
	}
	if j.Rank != 0 || f == nil && err == nil {
		h.postNotice(ctx, j.Rank, misfitError{reason})
	}
}

// join is Join with a geometry, and with a function that determines whether waits poll.
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
	rest.tokens, rest.cores = groupsync.Tokens(n.states()), groupsync.LostCores(n.states())

	if err := n.populate(j.Rank); err != nil {
		_ = s.close()
		return nil, fmt.Errorf("shm: rank %d: %w", j.Rank, err)
	}
	if err := s.safely(func() error { n.poll = poll(s); return nil }); err != nil {
		return nil, errors.Join(err, s.close())
	}
	m := &mapped{segment: s}
	m.endpoint = n.endpoint(j.Rank, m.makeRegion)
	m.unmap = s.close
	return m, nil
}

// watched returns a context that ends soon after gone returns an error, with that error as its
// cause. gone is not called after stop has returned.
func watched(ctx context.Context, gone func() error) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher interleave.WaitGroup

	watcher.Go(func() {
		for ctx.Err() == nil {
			if err := gone(); err != nil {
				interleave.Step()
				cancel(err)
			}
			pause := interleave.NewTimer(longestPause)
			interleave.First(ctx.Done(), pause.C)
			pause.Stop()
		}
	})

	return ctx, func() {
		interleave.Step()
		cancel(nil)
		watcher.Wait()
	}
}

// populate makes the memory present that a rank writes for others. Its first calls then cause no
// page faults, and missing memory is an error here.
func (n *node) populate(rank int) error {
	l := n.layout
	for _, part := range [...]struct{ off, bytes int }{
		{l.states, l.ranks * groupsync.StateBytes},
		{l.payloads + 2*rank*l.payload, 2 * l.payload},
		{l.pieces + 2*rank*l.piece, 2 * l.piece},
	} {
		if err := n.arena.populate(part.off, part.bytes); err != nil {
			return err
		}
	}
	return nil
}
