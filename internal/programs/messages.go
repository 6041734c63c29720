package programs

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// Tags: those below are for all messages between two ranks, others for one event.
const sharedTags = 3

// messages draws some messages from one rank to another, of one tag. One end may be put
// off to a later event.
func (n *numbers[T]) messages(d *drawing, g *group) {
	from, to := d.IntN(g.size()), d.IntN(g.size())
	tag, count := d.IntN(sharedTags), 1
	ready := new(int)
	form := d.IntN(4)
	if from == to && form < 2 {
		form += 2 // one end has to be begun before the other waits
	}
	if form >= 2 {
		tag = sharedTags + d.event // what is put off must not be overtaken
		count = 1 + d.IntN(3)
	}
	event := d.event
	lengths := make([]int, count)
	for i := range lengths {
		lengths[i] = d.length(0)
	}
	text := fmt.Sprintf("from rank %d to rank %d, of %d %v, tag %d, in %s", from, to, lengths, ccl.DTypeOf[T](), tag, g.name)
	data := func(i int) []T { return n.data(event, 10*i+g.members[from], lengths[i], n.bits) }
	send := func(async bool) {
		d.add(g.members[from], "send "+text, func(r *run) error {
			for i := range lengths {
				x, was := data(i), data(i)
				if async {
					r.later(g, ready, ccl.Isend(r.ctx, r.groups[g], x, to, tag), func() error { return same("what was sent", x, was) })
				} else if err := ccl.Send(r.ctx, r.groups[g], x, to, tag); err != nil {
					return err
				} else if err := same("what was sent", x, was); err != nil {
					return err
				}
			}
			return nil
		})
	}
	recv := func(async bool) {
		d.add(g.members[to], "recv "+text, func(r *run) error {
			for i := range lengths {
				x := n.data(event, 1000+r.rank, lengths[i], n.bits)
				check := func(source int) error {
					if source != from {
						return fmt.Errorf("the message is from rank %d", source)
					}
					return same("the message", x, data(i))
				}
				if async {
					w := ccl.Irecv(r.ctx, r.groups[g], x, from, tag)
					r.later(g, ready, w, func() error { return check(w.Source()) })
				} else if source, err := ccl.Recv(r.ctx, r.groups[g], x, from, tag); err != nil {
					return err
				} else if err := check(source); err != nil {
					return err
				}
			}
			return nil
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

// gathering draws messages of one length to one rank, which takes them from whoever
// comes first.
func (n *numbers[T]) gathering(d *drawing, g *group) {
	to, tag, length := d.IntN(g.size()), sharedTags+d.event, d.length(0)
	event := d.event
	counts, total := make([]int, g.size()), 0
	for _, r := range d.some(g) {
		counts[r] = 1 + d.IntN(3)
		total += counts[r]
	}
	text := fmt.Sprintf("of %d %v from %d to rank %d, tag %d, in %s", length, ccl.DTypeOf[T](), counts, to, tag, g.name)
	data := func(from, i int) []T { return n.data(event, 10*i+g.members[from], length, n.bits) }
	for from, rank := range g.members {
		async := d.IntN(2) == 0 || from == to
		d.add(rank, "sends "+text, func(r *run) error {
			for i := range counts[from] {
				x := data(from, i)
				if async {
					r.later(g, &event, ccl.Isend(r.ctx, r.groups[g], x, to, tag), func() error { return same("what was sent", x, data(from, i)) })
				} else if err := ccl.Send(r.ctx, r.groups[g], x, to, tag); err != nil {
					return err
				}
			}
			return nil
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
		for i, w := range all {
			r.later(g, &event, w, func() error {
				if i > 0 {
					return nil // the first looks at all, in the order in which they were begun
				}
				for i, w := range all {
					if err := w.Wait(r.ctx); err != nil {
						return err
					}
					if err := check(w.Source(), bufs[i]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
}

// exchange draws messages of all ranks at once, to the one that is so far ahead.
func (n *numbers[T]) exchange(d *drawing, g *group) {
	ahead, tag := d.IntN(g.size()), sharedTags+d.event
	event := d.event
	lengths := make([]int, g.size())
	for r := range lengths {
		lengths[r] = d.length(0)
	}
	text := fmt.Sprintf("send_recv of %d %v, %d ahead, tag %d, in %s", lengths, ccl.DTypeOf[T](), ahead, tag, g.name)
	for r, rank := range g.members {
		to, from := (r+ahead)%g.size(), (r-ahead+g.size())%g.size()
		d.add(rank, text, func(run *run) error {
			x := make([]T, lengths[from])
			source, err := ccl.SendRecv(run.ctx, run.groups[g], n.data(event, rank, lengths[r], n.bits), to, x, from, tag)
			if err != nil {
				return err
			}
			if source != from {
				return fmt.Errorf("the message is from rank %d, want %d", source, from)
			}
			return same("the message", x, n.data(event, g.members[from], lengths[from], n.bits))
		})
	}
}
