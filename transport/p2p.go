package transport

// P2P carries messages between two ranks outside of calls.
//
// One goroutine at a time may use it, also while another goroutine makes calls of the endpoint.
// Each ordered pair of different ranks has its own stream, in order, separate from the streams of
// calls. Message.Seq and Message.Clock are free for the users of P2P.
//
// A P2P shares the failure, departures and deaths of its group with the endpoint. Only Rest
// blocks. Callers poll their condition, Endpoint.Failed and Lost, and then call Rest until
// something may have changed.
type P2P interface {
	// TryPut does what Endpoint.Put does if there is room; otherwise ok is false and nothing
	// was put. Where the transport shows the sender's own memory, m.Bytes must not change before
	// TryDrained or TryWithdraw allows it, whatever happens to either rank. errors.As finds
	// *AllocationFailedError if the transport has no memory for another pair of ranks.
	TryPut(to int, m *Message) (n int, ok bool, err error)
	// TryDrained reports whether rank `to` has taken everything that was put.
	TryDrained(to int) bool
	// TryNext does what Endpoint.Next does if a part has arrived; otherwise ok is false. Once the
	// group has failed it returns no part that it had not returned before. errors.As finds
	// *ProtocolError.
	TryNext(from int) (view Message, ok bool, err error)
	// Take gives the view of TryNext back to the sender. A receiver calls it soon, also after
	// the group has failed or the endpoint was closed, because the sender may be waiting for it.
	Take(from int)
	// TryWithdraw ends this rank's stream to rank `to`, for any reason: a failure, a departure,
	// Close. While rank `to` has a view of this rank's memory, ok is false; taking that view
	// ends a Rest of this rank. Once ok is true, no rank has such a view or will get one, and no
	// more can be put; taken reports that everything that was put had been taken. Where the
	// transport copies, ok is always true, and what was put may still be taken.
	TryWithdraw(to int) (taken, ok bool)

	// Rest blocks until ready returns true, or, since the last Rest returned, Wake was called or
	// an event was noticed: a failure of the group, a departure, a rejected call, the death of a rank,
	// Close of this endpoint. The caller's goroutine calls ready repeatedly; ready inspects this
	// P2P. With noSpin Rest sleeps at once; otherwise it polls and yields first, as the waits of
	// calls do.
	Rest(ready func() bool, noSpin bool)
	// Wake ends the Rest in progress, or the next one. Any goroutine may call it at any time.
	Wake()
	// WaitFor announces the rank that this rank waits for, so that others can find out for whom
	// they wait in the end; -1: for no particular one, or no longer. Once a Rest has slept, this
	// rank counts as waiting for peer, also between Rests, until peer puts something for it or
	// takes something from it, and again as soon as another Rest sleeps. A WaitFor of another
	// rank ends it.
	WaitFor(peer int)
	// Behind follows the chain of waits, in calls and in P2Ps, from peer to its end, and returns
	// the rank there. A rank that got what it waited for and does not go on is the end, wherever
	// it was stopped.
	//
	// A rank that calls Behind gives up. It counts as waiting for the rank of its last WaitFor
	// until that rank serves it, or its own next WaitFor, Enter or Reject, so that other ranks
	// that time out at the same moment do not take it for the end.
	Behind(peer int) int
	// AwaitedBy returns the rank that peer waits for, in a call or in its P2P, as far as this rank
	// knows; -1: no particular one, or none.
	AwaitedBy(peer int) int

	// Lost returns a *PeerLostError if peer has left the group, or has died and a Rest has
	// noticed; ErrClosed if this endpoint was closed; otherwise nil. What peer sent before may
	// still be there: call TryNext once more after Lost. Any goroutine may call it at any time
	// until the endpoint is freed.
	//
	// Peer -1 stands for any rank: the error is about one that has died before it left, or, once all
	// others are lost, about those that have left.
	Lost(peer int) error
}
