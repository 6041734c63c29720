package mesh

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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
func (j *joining) lead(ctx context.Context) (*Mesh, error) {
	l, err := j.Rendezvous.Listen(ctx, j.listenAddress)
	if err != nil {
		return nil, err
	}
	j.listen(l)
	r := &leader{joining: j, members: make([]*member, j.Size), peers: make([]*peer, j.Size), events: make(chan event)}
	r.members[0] = j.member()

	defer r.closePeers()
	if f := r.gather(ctx); f != nil {
		r.sendAll(&message{Failure: f})
		r.refuseLate(ctx, f)
		return nil, f.error(0)
	}

	m, f := r.linkAll(ctx)
	if f != nil {
		r.sendAll(&message{Failure: f})
		return nil, f.error(0)
	}
	r.sendAll(&message{Ready: true})
	return m, nil
}

// gather waits until all ranks have come.
func (r *leader) gather(ctx context.Context) *failure {
	for slices.Contains(r.members, nil) {
		f := r.next(ctx, func(e event) *failure {
			if e.Member == nil {
				return r.unexpected(e)
			}
			return r.admit(e)
		})
		if f != nil {
			return f
		}
	}
	return nil
}

// next handles what happens next: one event, a rank that comes, or the end of ctx.
func (r *leader) next(ctx context.Context, handle func(event) *failure) *failure {
	select {
	case conn := <-r.joins:
		go (&peer{conn, -1}).readAll(r.events, r.ended)
		return nil
	case <-ctx.Done():
		return r.completed(r.failed(endOf(ctx)))
	case e := <-r.events:
		switch {
		case e.err != nil && e.rank < 0: // it has not said who it is
			_ = e.Close()
			return nil
		case e.err != nil:
			m := r.members[e.rank]
			return &failure{Kind: transport.FailurePeerLost, By: 0, Ranks: []int{e.rank}, PID: m.PID, Hint: fmt.Sprintf("it was on host %s, and its connection ended: %v", m.Host, e.err)}
		case e.Failure != nil && e.rank >= 0:
			return r.completed(e.Failure)
		}
		return handle(e)
	}
}

// unexpected is the failure of a message that its sender may not send.
func (r *leader) unexpected(e event) *failure {
	if e.rank < 0 {
		_ = e.Close()
		return nil
	}
	return &failure{Kind: transport.FailureAborted, By: e.rank, Text: fmt.Sprintf("rank %d sent a message out of order", e.rank)}
}

// admit makes the sender of an event a member, or refuses it.
func (r *leader) admit(e event) *failure {
	m := e.Member
	if m.Job != r.Job { // another job's, which does not concern this one
		_ = e.send(&message{Failure: &failure{Kind: transport.FailureAborted, By: m.Rank, Text: fmt.Sprintf(
			"job %q is being joined at %s, on host %s, and this rank is of job %q: give each job a port of its own", r.Job, r.listener.Addr(), r.host, m.Job)}})
		_ = e.Close()
		return nil
	}

	if text := r.misfit(m); text != "" {
		f := &failure{Kind: transport.FailureAborted, By: m.Rank, Text: text}
		_ = e.send(&message{Failure: f})
		_ = e.Close()
		return f
	}
	e.rank = m.Rank
	r.members[m.Rank], r.peers[m.Rank] = m, e.peer
	return nil
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
		other := r.members[m.Rank]
		return fmt.Sprintf("two processes say they are rank %d, on host %s (pid %d) and on host %s (pid %d): give each a rank of its own, and each job a port of its own",
			m.Rank, other.Host, other.PID, m.Host, m.PID)
	}

	for i, fact := range first.Facts {
		if i >= len(m.Facts) || m.Facts[i].Name != fact.Name {
			return fmt.Sprintf("%s has another version of goccl than rank 0 on host %s", who, r.host)
		}
		if got := m.Facts[i].Value; got != fact.Value {
			return fmt.Sprintf("%s has another %s than rank 0 on host %s: %s, not %s", who, fact.Name, r.host, got, fact.Value)
		}
	}
	return ""
}

// completed adds to a timeout who is missing, and what is known of them.
func (r *leader) completed(f *failure) *failure {
	if f.Kind != transport.FailureTimeout || len(f.Ranks) > 0 {
		return f
	}

	byHost := map[string][]int{}
	for rank, m := range r.members {
		if m == nil {
			f.Ranks = append(f.Ranks, rank)
			host := r.hostOf(rank)
			byHost[host] = append(byHost[host], rank)
		}
	}

	var hints, unknown []string
	for host, ranks := range byHost {
		if host == "" {
			unknown = append(unknown, "of the host of "+transport.RanksText(ranks)+" no rank has come")
		} else {
			hints = append(hints, transport.RanksText(ranks)+" should be on host "+host)
		}
	}

	slices.Sort(hints)
	if hints = append(hints, unknown...); r.listener.Strangers() != "" {
		hints = append(hints, r.listener.Strangers())
	}
	f.Hint = strings.Join(hints, "; ")
	return f
}

// hostOf returns the host of a rank that has not come, as far as others of its node tell; else "".
func (r *leader) hostOf(rank int) string {
	for _, m := range r.members {
		if m == nil {
			continue
		}
		if first := m.Rank - m.LocalRank; rank >= first && rank < first+m.LocalSize {
			return m.Host
		}
	}
	return ""
}

// linkAll lets all ranks connect with each other, and waits until they have done so.
func (r *leader) linkAll(ctx context.Context) (*Mesh, *failure) {
	t := &table{Session: newSession(), Members: r.members}
	r.sendAll(&message{Table: t})
	l := r.startLink(ctx, t, r.events)
	linked := make([]bool, r.Size)
	for slices.Contains(linked, false) {
		f := r.next(ctx, func(e event) *failure {
			switch {
			case e.Member != nil && e.rank < 0:
				return r.admit(e) // refused, since all are there
			case !e.Linked || e.rank < 0:
				return r.unexpected(e)
			}
			linked[e.rank] = true
			return nil
		})

		if f != nil {
			l.discard()
			for rank, isLinked := range linked {
				if f.Kind == transport.FailureTimeout && !isLinked {
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
func (r *leader) refuseLate(ctx context.Context, f *failure) {
	ctx, cancel := context.WithTimeout(ctx, refuseTime)
	defer cancel()
	var refusing sync.WaitGroup
	defer refusing.Wait()

	for ctx.Err() == nil {
		select {
		case conn := <-r.joins:
			refusing.Go(func() { refuse(ctx, &peer{conn, -1}, f) })
		case e := <-r.events:
			if e.err == nil && e.Member != nil && e.rank < 0 {
				_ = e.send(&message{Failure: f})
				_ = e.Close()
			}
		case <-ctx.Done():
		}
	}
}

// refuse answers a rank that has come too late.
func refuse(ctx context.Context, p *peer, f *failure) {
	deadline, _ := ctx.Deadline()
	_ = p.SetReadDeadline(deadline)
	_, _ = receive(p) // unread, it would make the other's system drop the answer
	_ = p.send(&message{Failure: f})
	_ = p.Close()
}
