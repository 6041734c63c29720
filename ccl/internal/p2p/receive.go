package p2p

import "github.com/goccl/goccl/transport"

// incoming is the message that a rank is sending to this one.
type incoming struct {
	started    bool
	recv       *Transfer // the receive that gets it; nil: it goes to the unexpected queue
	unexpected message   // then its data so far
	total, got int       // bytes
	lost       bool      // the sender is lost, and a receive has failed because of it: ignore the rest
}

// receive moves what a rank has sent, until a receive has ended, nothing more has arrived,
// or no receive wants its messages.
func (e *Engine) receive(from int) (moved bool) {
	in := &e.incoming[from]
	if from == e.rank || in.lost {
		return false
	}

	for {
		m, ok, err := e.link.TryNext(from)
		switch {
		case err != nil:
			e.fail(err)
			return true
		case !ok:
			return moved
		}

		moved = true
		if !in.started {
			e.match(in, from, &m)
		}

		if in.got+len(m.Bytes) > in.total {
			e.link.Take(from)
			e.fail(&transport.ProtocolError{Peer: from, Text: "a message is longer than announced"})
			return true
		}

		in.store(m.Bytes)
		e.link.Take(from)
		if in.got < in.total {
			continue
		}

		done := *in
		*in = incoming{}
		if t := done.recv; t != nil {
			t.From = from
			e.finish(t, nil)
			return true
		}
		e.putUnexpected(done.unexpected)
		if !e.wants(from) {
			return true
		}
	}
}

// match finds the receive for a message by its first part.
func (e *Engine) match(in *incoming, from int, m *transport.Message) {
	tag, typ := int(m.Seq), m.Clock
	in.started, in.total = true, m.Total
	if t := e.claim(from, tag, typ, m.Total); t != nil {
		t.allocate(m.Total)
		t.visible = true
		in.recv = t
		return
	}
	in.unexpected = message{from: from, tag: tag, typ: typ, data: make([]byte, 0, min(m.Total, reservedBytes))}
}

// reservedBytes bounds the memory that is reserved for an unexpected message before its data
// arrives, since the announced length may be wrong.
const reservedBytes = 64 << 20

// store stores the next part of the message.
func (in *incoming) store(part []byte) {
	if in.recv != nil {
		copy(in.recv.Data[in.got:], part)
	} else {
		in.unexpected.data = append(in.unexpected.data, part...)
	}
	in.got += len(part)
}
