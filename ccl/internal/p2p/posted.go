package p2p

import "slices"

// claim takes the first receive that accepts the message out of the posted queue; nil if
// none does. Receives that match but expect another type or length fail.
func (e *Engine) claim(from, tag int, typ uint32, length int) *Transfer {
	for i := 0; i < len(e.posted); {
		t := e.posted[i]
		if !t.matches(from, tag) {
			i++
			continue
		}

		if err := t.compare(from, typ, length); err != nil {
			e.finish(t, err)
			continue
		}
		e.posted = slices.Delete(e.posted, i, i+1)
		return t
	}
	return nil
}

// offer gives a complete message to the first posted receive that accepts it, and reports
// whether there was one.
func (e *Engine) offer(m message) bool {
	t := e.claim(m.from, m.tag, m.typ, len(m.data))
	return t != nil && e.receiveMessage(t, m)
}

// wants reports whether a posted receive accepts messages from a rank.
func (e *Engine) wants(from int) bool {
	return slices.ContainsFunc(e.posted, func(t *Transfer) bool { return t.Peer == from || t.Peer == AnySource })
}

// sendToSelf completes a send to this rank if a receive is posted.
func (e *Engine) sendToSelf(t *Transfer) bool {
	if !e.offer(t.toSelf()) {
		return false
	}
	e.finish(t, nil)
	return true
}

// toSelf returns the message of a send to this rank.
func (t *Transfer) toSelf() message {
	return message{from: t.Peer, tag: t.Tag, typ: t.Type, data: t.Data}
}
