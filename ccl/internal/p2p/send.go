package p2p

import "github.com/goccl/goccl/transport"

// send moves the next part of a message.
func (e *Engine) send(t *Transfer) (moved bool) {
	if t.cause != nil {
		return e.withdraw(t, t.cause)
	}

	if t.visible && t.sent == len(t.Data) {
		if !e.link.TryDrained(t.Peer) {
			return false
		}
		e.finish(t, nil)
		return true
	}

	e.part = transport.Message{
		Bytes: t.Data[t.sent:], Total: len(t.Data), Seq: uint64(t.Tag), Clock: t.Type,
	}

	n, ok, err := e.link.TryPut(t.Peer, &e.part)
	switch {
	case err != nil:
		e.finish(t, err)
		return true
	case !ok:
		return false
	}

	t.visible = true
	t.sent += n
	if t.sent == len(t.Data) && e.link.TryDrained(t.Peer) {
		e.finish(t, nil)
	}
	return true
}

// withdraw ends a transfer that did not succeed, and reports whether it has ended. While
// another rank reads its buffer, a send stays in its queue; if that rank has then taken the
// whole message, the send has succeeded. (rules closeWithdraws,
// lostWithdraws, viewedIsAwaited)
func (e *Engine) withdraw(t *Transfer, cause error) (ended bool) {
	if t.Sending && t.visible {
		switch taken, ok := e.link.TryWithdraw(t.Peer); {
		case !ok:
			t.cause = cause
			return false
		case taken && t.sent == len(t.Data):
			cause = nil
		}
	}
	e.finish(t, cause)
	return true
}
