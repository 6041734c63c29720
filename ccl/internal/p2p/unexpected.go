package p2p

import "slices"

// message is a complete message.
type message struct {
	from, tag int
	typ       uint32
	data      []byte
}

// putUnexpected puts a complete message into the unexpected queue, unless a receive that accepts it
// was posted while it arrived.
func (e *Engine) putUnexpected(m message) {
	if !e.offer(m) {
		e.unexpected = append(e.unexpected, m)
	}
}

// receiveUnexpected ends a new receive if a message in the unexpected queue matches. A
// message of another type or length stays in the queue.
func (e *Engine) receiveUnexpected(t *Transfer) (ended bool) {
	for i, m := range e.unexpected {
		if !t.matches(m.from, m.tag) {
			continue
		}
		if e.receiveMessage(t, m) {
			e.unexpected = slices.Delete(e.unexpected, i, i+1)
		}
		return true
	}
	return false
}

// receiveFromSelf ends a new receive if a send to this rank matches.
func (e *Engine) receiveFromSelf(t *Transfer) (ended bool) {
	for _, send := range e.sends[e.rank] {
		if !t.matches(e.rank, send.Tag) {
			continue
		}
		if e.receiveMessage(t, send.toSelf()) {
			e.finish(send, nil)
		}
		return true
	}
	return false
}

// receiveMessage ends a receive with a complete message that matches, and reports whether the
// type and length are those that the receive expects.
func (e *Engine) receiveMessage(t *Transfer, m message) bool {
	err := t.compare(m.from, m.typ, len(m.data))
	if err == nil {
		t.allocate(len(m.data))
		copy(t.Data, m.data)
		t.From = m.from
	}
	e.finish(t, err)
	return err == nil
}
