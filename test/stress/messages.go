package stress

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// sharedTags is the number of tags that all events use. Each event has a tag of its own as
// well.
const sharedTags = 3

// messages draws some messages from one rank to another, with one tag. One end may be
// deferred to a later event.
func (n numbers[T]) messages(d *drawing, g *group) {
	from, to := d.IntN(g.size()), d.IntN(g.size())
	tag, count := d.IntN(sharedTags), 1
	ready := new(int)
	form := d.IntN(4)
	if d.prompt {
		form = 0
		if g.size() > 1 && from == to {
			to = (from + 1) % g.size()
		}
	}
	if from == to && form < 2 {
		form += 2 // one end must start before the other waits
	}
	if form >= 2 {
		tag = sharedTags + d.event // a deferred message must not be overtaken
		count = 1 + d.IntN(3)
	}
	event := d.event
	lengths := make([]int, count)
	for i := range lengths {
		lengths[i] = d.length(0)
	}

	text := fmt.Sprintf("from rank %d to rank %d, of %d %v, tag %d, in %s", from, to, lengths, ccl.DTypeOf[T](), tag, g.name)
	data := func(i int) []T { return n.data(event, 10*i+g.members[from], lengths[i]) }
	what := Outcome{Event: event, Text: text, From: g.members[from], To: g.members[to]}
	send := func(isAsync bool) {
		d.addAll(g.members[from], "send "+text, count, func(i int) func(*run) error {
			return n.send(g, what, i, isAsync, data(i), ready, to, tag)
		})
	}

	recv := func(isAsync bool) {
		d.addAll(g.members[to], "recv "+text, count, func(i int) func(*run) error {
			return n.recv(g, what, i, isAsync, data(i), ready, from, tag)
		})
	}

	first, second := send, recv
	switch form {
	case 0, 1: // both now
		*ready = d.event
		send(d.IntN(2) == 0)
		recv(d.IntN(2) == 0)
		return
	case 2:
		first, second = recv, send
	}
	first(true)
	g.owed++
	d.owed = append(d.owed, owed{d.event + 1 + d.IntN(20), func() {
		*ready = d.event
		second(d.IntN(2) == 0)
		g.owed--
	}})
}

// gathering draws messages of one length to one rank, which receives them in any order.
func (n numbers[T]) gathering(d *drawing, g *group) {
	to, tag, length := d.IntN(g.size()), sharedTags+d.event, d.length(0)
	event := d.event
	counts, total := make([]int, g.size()), 0
	for _, r := range d.subset(g) {
		counts[r] = 1 + d.IntN(3)
		total += counts[r]
	}

	text := fmt.Sprintf("of %d %v from %d to rank %d, tag %d, in %s", length, ccl.DTypeOf[T](), counts, to, tag, g.name)
	data := func(from, i int) []T { return n.data(event, 10*i+g.members[from], length) }
	for from, rank := range g.members {
		async := d.IntN(2) == 0 || from == to
		d.addAll(rank, "sends "+text, counts[from], func(i int) func(*run) error {
			return n.send(g, Outcome{}, i, async, data(from, i), &event, to, tag)
		})
	}
	async := d.IntN(2) == 0
	d.add(g.members[to], "recvs "+text, func(r *run) error {
		seen := make([]int, g.size()) // from each rank
		check := func(source int, x []T) error {
			if source < 0 || source >= g.size() || seen[source] == counts[source] {
				return fmt.Errorf("a message is from rank %d", source)
			}
			seen[source]++
			return same(fmt.Sprintf("message %d from rank %d", seen[source]-1, source), x, data(source, seen[source]-1))
		}

		var all []*ccl.Work
		var bufs [][]T
		for range total {
			x := make([]T, length)

			if !async {
				source, err := ccl.Recv(r.ctx, r.groups[g], x, ccl.AnySource, tag)
				if err == nil {
					err = check(source, x)
				}
				if err != nil {
					return err
				}
				continue
			}
			all, bufs = append(all, ccl.Irecv(r.ctx, r.groups[g], x, ccl.AnySource, tag)), append(bufs, x)
		}

		checkAll := func() error { // in the order in which they were started
			for i, w := range all {
				err := w.Wait(r.ctx)
				if err == nil {
					err = check(w.Source(), bufs[i])
				}
				if err != nil {
					return err
				}
			}
			return nil
		}

		for _, w := range all {
			r.later(&event, w, &ending{group: g, check: checkAll, spoil: func() {}})
			checkAll = func() error { return nil } // the first checks all
		}
		return nil
	})
}

// anyTimeout is how long a receive from any rank waits. It is short, since a rank that has left
// ends no such receive.
const anyTimeout = 20 * time.Millisecond

// fromAny draws a message that its receiver takes from any rank. It is short: no part of it has
// come when a receive ends by its timeout.
func (n numbers[T]) fromAny(d *drawing, g *group) {
	from, ahead, tag, length := d.IntN(g.size()), d.IntN(g.size()), sharedTags+d.event, d.IntN(2)
	if ahead == 0 {
		return
	}
	to, event := (from+ahead)%g.size(), d.event
	text := fmt.Sprintf("from rank %d to rank %d, which takes it from any, of %d %v, tag %d, in %s", from, to, length, ccl.DTypeOf[T](), tag, g.name)
	what := Outcome{Event: event, Text: text, From: g.members[from], To: g.members[to]}
	async, data := d.IntN(2) == 0, func() []T { return n.data(event, g.members[from], length) }
	d.addAll(g.members[from], "send "+text, 1, func(i int) func(*run) error {
		return n.send(g, what, i, async, data(), &event, to, tag)
	})

	d.add(g.members[to], "recv "+text, func(r *run) error {
		var source int
		var err error
		x := make([]T, length)
		e := n.receiving(g, what, 0, x, data(), &source)

		for {
			source, err = ccl.Recv(r.ctx, r.groups[g], x, ccl.AnySource, tag, ccl.WithTimeout(anyTimeout))
			// A death ends a receive from any rank, whichever would have sent.
			if lost, ok := errors.AsType[*transport.PeerLostError](err); ok && lost.Rank != from {
				source, err = ccl.Recv(r.ctx, r.groups[g], x, from, tag)
			}
			late, ok := errors.AsType[*transport.TimeoutError](err)
			if ok && !slices.Contains(late.Left, from) {
				if r.groups[g].Err() == nil {
					continue
				}
				source, err = ccl.Recv(r.ctx, r.groups[g], x, from, tag) // the failure came after the timeout
			}
			return r.ended(e, err)
		}
	})
}

// exchange draws one message from every rank to the rank a fixed distance ahead.
func (n numbers[T]) exchange(d *drawing, g *group) {
	ahead, tag := d.IntN(g.size()), sharedTags+d.event
	event := d.event
	lengths := make([]int, g.size())
	for r := range lengths {
		lengths[r] = d.length(0)
	}

	text := fmt.Sprintf("send_recv of %d %v, %d ahead, tag %d, in %s", lengths, ccl.DTypeOf[T](), ahead, tag, g.name)
	for r, rank := range g.members {
		to, from := (r+ahead)%g.size(), (r-ahead+g.size())%g.size()
		d.addReady(rank, text, func() func(*run) error {
			send, x := n.data(event, rank, lengths[r]), make([]T, lengths[from])
			want := n.data(event, g.members[from], lengths[from])
			var source int
			out := n.sending(g, Outcome{Event: event, Text: text, From: rank, To: g.members[to]}, 0, send)
			in := n.receiving(g, Outcome{Event: event, Text: text, From: g.members[from], To: rank}, 0, x, want, &source)
			return func(run *run) (err error) {
				source, err = ccl.SendRecv(run.ctx, run.groups[g], send, to, x, from, tag)
				if err != nil { // it may be of either
					out.what.Kind, in.what.Kind = Exchange, Exchange
				}
				if failed := run.ended(in, err); failed != nil {
					return failed
				}
				return run.ended(out, err)
			}
		})
	}
}

// crossing draws messages from every rank to every rank, each with a tag of its own, which all are
// started at once and in any order.
func (n numbers[T]) crossing(d *drawing, g *group) {
	const most = 4 // messages from one rank to another
	event, count := d.event, 1+d.IntN(most)
	text := fmt.Sprintf("%d messages of %v to each, in %s", count, ccl.DTypeOf[T](), g.name)
	lengths := make([]int, g.size()*g.size()*count)
	for k := range lengths {
		lengths[k] = d.length(0)
	}

	prepare := func(rank, k int) func(*run) error {
		i, isSend := k/2%count, k%2 == 0
		from, to := rank, k/2/count
		if !isSend {
			from, to = to, from
		}

		what := Outcome{Event: event, Text: text, From: g.members[from], To: g.members[to]}
		x := n.data(event, 100*i+10*from+to, lengths[(from*g.size()+to)*count+i])
		tag := sharedTags + event + 1000*i
		if isSend {
			return n.send(g, what, i, true, x, &event, to, tag)
		}
		return n.recv(g, what, i, true, x, &event, from, tag)
	}
	for rank, member := range g.members {
		order := d.Perm(2 * count * g.size())
		d.addAll(member, "crossing "+text, len(order), func(i int) func(*run) error { return prepare(rank, order[i]) })
	}
}

// send returns a function that sends message number i of an event.
func (n numbers[T]) send(g *group, what Outcome, i int, isAsync bool, x []T, ready *int, to, tag int) func(*run) error {
	e := n.sending(g, what, i, x)
	return func(r *run) error {
		if isAsync {
			r.later(ready, ccl.Isend(r.ctx, r.groups[g], x, to, tag), e)
			return nil
		}
		return r.ended(e, ccl.Send(r.ctx, r.groups[g], x, to, tag))
	}
}

// recv returns a function that receives message number i of an event.
func (n numbers[T]) recv(g *group, what Outcome, i int, isAsync bool, want []T, ready *int, from, tag int) func(*run) error {
	x, again := n.data(what.Event, 1000+what.To, len(want)), make([]T, len(want))
	return func(r *run) error {
		var source int
		e := n.receiving(g, what, i, x, want, &source)

		if isAsync {
			w := ccl.Irecv(r.ctx, r.groups[g], x, from, tag)
			check := e.check
			e.check = func() error {
				source = w.Source()
				return check()
			}
			r.later(ready, w, e)
			return nil
		}

		var err error
		source, err = ccl.Recv(r.ctx, r.groups[g], x, from, tag)
		if lost := r.ended(e, err); lost != nil || err == nil || r.notes == nil {
			return lost
		}
		// A receiver that did not get the whole message must not get its rest.
		e = n.receiving(g, what, i, again, want, &source)
		e.what.Kind = Retry
		source, err = ccl.Recv(r.ctx, r.groups[g], again, from, tag)
		return r.ended(e, err)
	}
}

// sending returns the checks at the end of the send of message number i of an event.
func (n numbers[T]) sending(g *group, what Outcome, i int, x []T) *ending {
	what.Kind, what.Index = Send, i
	was := slices.Clone(x)
	e := &ending{group: g, what: what, check: func() error { return same("what was sent", x, was) }}
	e.input = e.check
	e.spoil, e.untouched = n.spoils(x)
	return e
}

// receiving returns the checks at the end of the receive of that message; *source is the rank that
// sent it.
func (n numbers[T]) receiving(g *group, what Outcome, i int, x, want []T, source *int) *ending {
	what.Kind, what.Index = Recv, i
	e := &ending{group: g, what: what, check: func() error {
		if from := g.members[*source]; from != what.From {
			return fmt.Errorf("the message is from rank %d, want %d", from, what.From)
		}
		return same("the message", x, want)
	}}
	e.spoil, e.untouched = n.spoils(x)
	return e
}
