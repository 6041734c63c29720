package transport

// P2P carries messages between two ranks outside of calls. Each endpoint has one beside
// its collectives: one goroutine at a time may use it, while another makes calls. Every
// ordered pair of different ranks has a stream of its own here, in order, apart from the
// messages of collectives; what is in Message.Seq and Clock is its users' business.
//
// A lane shares its group's failure, departures and deaths with the endpoint. Only Rest
// waits: who uses a lane looks at what it is after, Endpoint.Failed and Lost, and then
// rests until there may be news.
type P2P interface {
	// TryPut is Endpoint.Put if there is room; else ok is false, and nothing was put. Where
	// the memory of the sender itself is shown, it must not change before TryDrained or
	// TryWithdraw says so, whatever happens to either rank. errors.As finds
	// *AllocationFailedError, if there is no memory for one more pair of ranks.
	TryPut(to int, m *Message) (n int, ok bool, err error)
	// TryDrained reports whether rank `to` has taken all that was put.
	TryDrained(to int) bool
	// TryNext is Endpoint.Next if there is something; else ok is false. Once the group has
	// failed it shows no part that it has not shown before. errors.As finds *ProtocolError.
	TryNext(from int) (view Message, ok bool, err error)
	// Take gives the view of TryNext back to the sender. Who has got a view takes it soon, also
	// when the group has failed or its endpoint is closed: the sender may be waiting for that.
	Take(from int)
	// TryWithdraw ends this rank's stream to rank `to`, for whatever reason: a failure, a
	// departure, Close. ok is false as long as rank `to` has a view of this rank's memory, which
	// ends a Rest when it takes it. Once ok is true, no rank has such a view nor will get one,
	// and no more can be put; taken reports that all that was put had been taken. Where ranks
	// see copies ok is always true, and what was put may still be taken.
	TryWithdraw(to int) (taken, ok bool)

	// Rest returns when ready does true; or, since it returned last, Wake was called or an
	// event was noticed: a failure of the group, a departure, a refusal, the death of a rank,
	// Close of this endpoint. ready looks at this lane, and is called again and again by the
	// caller's goroutine. A patient rest sleeps at once; else it polls and yields first, as
	// waits in calls do.
	Rest(ready func() bool, patient bool)
	// Wake ends the Rest that this rank is in, or its next one. It may be called at any time
	// by anyone.
	Wake()
	// WaitFor says for which rank the rests that follow are, so that others can tell for whom
	// they wait in the end; -1: for none in particular, or no more. It stays, also while the
	// lane does not rest, until the next WaitFor.
	WaitFor(peer int)
	// Behind returns the rank for which peer waits in the end: it goes from each rank that
	// waits, in a call or by its lane, to the one it waits for.
	Behind(peer int) int

	// Lost is a *PeerLostError if peer has left the group, or if it has died and a Rest has
	// noticed that, and ErrClosed if this endpoint was closed. What peer sent before is still
	// there: look with TryNext once more after Lost. It may be called at any time by anyone, as
	// long as the endpoint is not free.
	Lost(peer int) error
}
