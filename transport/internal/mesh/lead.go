package mesh

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/transport"
)

// leader is rank 0, which gathers all ranks.
type leader struct {
	*joining
	members []*member // by rank; nil: it has not come
	peers   []*peer
	events  chan event
}

// lead is Connect of rank 0.
func (j *joining) lead(ctx context.Context) (m *Mesh, err error) {
	l, err := j.Rendezvous.Listen(ctx, j.listenAddress)
	if err != nil {
		return nil, err
	}
	j.listener = handshake.Serve(l, j.Secret, j.accept)
	r := &leader{joining: j, members: make([]*member, j.Size), peers: make([]*peer, j.Size), events: make(chan event)}
	r.members[0] = j.member()
	defer r.closePeers()

	last := &message{Ready: true}
	f := r.gather(ctx)
	if f != nil {
		defer r.refuseLate(ctx, f)
	} else {
		m, f = r.linkAll(ctx)
	}

	if f != nil {
		last = &message{Failure: f}
	}
	r.sendAll(last)
	return m, errorOf(f, 0)
}

// gather waits until all ranks have come.
func (r *leader) gather(ctx context.Context) (f *transport.Failure) {
	for f == nil && slices.Contains(r.members, nil) {
		f = r.next(ctx, r.unexpected)
	}
	return f
}

// next handles what happens next: a rank that comes, one that gives up or is lost, the end of ctx,
// or another message, which it gives to handle.
func (r *leader) next(ctx context.Context, handle func(event) *transport.Failure) *transport.Failure {
	select {
	case conn := <-r.joins:
		go (&peer{conn, -1}).readAll(r.events, r.ended)
		return nil
	case <-ctx.Done():
		return r.completed(r.failureOf(r.endOf(ctx)))
	case e := <-r.events:
		switch {
		case e.rank < 0 && e.err == nil && e.Member != nil:
			return r.admit(e)
		case e.rank < 0: // it has not said who it is
			_ = e.Close()
			return nil
		case e.err != nil:
			m := r.members[e.rank]
			return &transport.Failure{Kind: transport.FailurePeerLost, Ranks: []int{e.rank}, PID: m.PID, Reason: fmt.Sprintf("it was on host %s, and its connection ended: %v", m.Host, e.err)}
		case e.Failure != nil:
			return r.completed(e.Failure)
		}
		return handle(e)
	}
}

// unexpected is the failure of a message that its sender may not send.
func (r *leader) unexpected(e event) *transport.Failure {
	return aborted(e.rank, "it sent a message out of order")
}

func aborted(by int, format string, args ...any) *transport.Failure {
	return &transport.Failure{Kind: transport.FailureAborted, By: by, Text: fmt.Sprintf(format, args...)}
}

// admit makes the sender of an event a member, or refuses it.
func (r *leader) admit(e event) (f *transport.Failure) {
	m, isOther := e.Member, e.Member.Job != r.Job
	if isOther { // it does not concern this job
		f = aborted(m.Rank, "job %q is being joined at %s, on host %s, and this rank is of job %q: give each job a port of its own", r.Job, r.listener.Addr(), r.host, m.Job)
	} else if text := r.misfit(m); text != "" {
		f = aborted(m.Rank, "%s", text)
	}
	if f == nil {
		e.rank = m.Rank
		r.members[m.Rank], r.peers[m.Rank] = m, e.peer
		return nil
	}

	_ = e.send(&message{Failure: f})
	_ = e.Close()
	if isOther {
		return nil
	}
	return f
}

// misfit says why a member does not belong to those that have come, "" if it does.
func (r *leader) misfit(m *member) string {
	who, first := fmt.Sprintf("rank %d on host %s (pid %d)", m.Rank, m.Host, m.PID), r.members[0]
	switch {
	case m.Size != r.Size:
		return fmt.Sprintf("%s is one of %d ranks, and rank 0 on host %s one of %d: give all the same WORLD_SIZE", who, m.Size, r.host, r.Size)
	case m.Rank < 0 || m.Rank >= r.Size:
		return fmt.Sprintf("%s is none of the %d ranks", who, r.Size)
	case r.members[m.Rank] != nil:
		return fmt.Sprintf("two processes say they are rank %d, one on host %s (pid %d): %s; give each a rank of its own, and each job a port of its own",
			m.Rank, r.members[m.Rank].Host, r.members[m.Rank].PID, who)
	case len(m.Facts) != len(first.Facts):
		return fmt.Sprintf("%s has another version of goccl than rank 0 on host %s", who, r.host)
	}

	for i, fact := range first.Facts {
		if m.Facts[i] != fact {
			return fmt.Sprintf("%s has another %s than rank 0 on host %s: %s, not %s", who, fact.Name, r.host, m.Facts[i].Value, fact.Value)
		}
	}
	return ""
}

// completed adds to a timeout who is missing, and what is known of them.
func (r *leader) completed(f *transport.Failure) *transport.Failure {
	if f.Kind != transport.FailureStuck {
		return f
	}
	f.Kind, f.Ranks = transport.FailureTimeout, nil
	var hints []string

	for rank, m := range r.members {
		if m != nil {
			continue
		}
		f.Ranks = append(f.Ranks, rank)
		isNear := func(m *member) bool { return m != nil && uint(rank+m.LocalRank-m.Rank) < uint(max(m.LocalSize, 0)) }
		if i := slices.IndexFunc(r.members, isNear); i >= 0 {
			hints = append(hints, fmt.Sprintf("rank %d should be on host %s", rank, r.members[i].Host))
		}
	}

	if strangers := r.listener.Strangers(); strangers != "" {
		hints = append(hints, strangers)
	}
	f.Reason = strings.Join(hints, "; ")
	return f
}

// linkAll lets all ranks connect with each other, and waits until they have done so.
func (r *leader) linkAll(ctx context.Context) (*Mesh, *transport.Failure) {
	t := &table{Session: newSession(), Members: r.members}
	r.sendAll(&message{Table: t})
	l := r.startLink(ctx, t, r.events)
	linked := make([]bool, r.Size)
	for slices.Contains(linked, false) {
		f := r.next(ctx, func(e event) *transport.Failure {
			if !e.Linked {
				return r.unexpected(e)
			}
			linked[e.rank] = true
			return nil
		})

		if f != nil {
			l.discard()
			for rank := range linked {
				if f.Kind == transport.FailureTimeout && !linked[rank] {
					f.Ranks = append(f.Ranks, rank)
				}
			}
			return nil, f
		}
	}
	return l.take(), nil
}

// sendAll sends a message to all that have come. Who does not get it has failed, and is noticed.
func (r *leader) sendAll(m *message) {
	for _, p := range r.peers {
		if p != nil {
			_ = p.send(m)
		}
	}
}

func (r *leader) closePeers() {
	for _, p := range r.peers {
		if p != nil {
			_ = p.Close()
		}
	}
}

// refuseTime is how long rank 0 stays after a failure, to tell the ranks that come late.
const refuseTime = time.Second

// refuseLate tells the ranks that come now why the others have not waited for them.
func (r *leader) refuseLate(ctx context.Context, f *transport.Failure) {
	ctx, cancel := context.WithTimeout(ctx, refuseTime)
	defer cancel()
	for ctx.Err() == nil {
		before := slices.Clone(r.peers)
		_ = r.next(ctx, r.unexpected)
		for rank, p := range r.peers {
			if p != before[rank] {
				_ = p.send(&message{Failure: f})
			}
		}
	}
}
